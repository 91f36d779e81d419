import { OutcomeUnknown, Unavailable } from '../../errors.ts';

export function isBusy(error: unknown): boolean {
  return codeOf(error) === busy;
}

/** True if the disk is full, fails, or cannot be written. */
export function isOfDisk(error: unknown): boolean {
  return [readOnly, inputOutput, full, cannotOpen].includes(codeOf(error) ?? 0);
}

/** True for a start failure that may pass: another program's lock, a full or failing disk. */
export function isPassing(error: unknown): boolean {
  const { code = '' } = (error ?? {}) as NodeJS.ErrnoException;
  return [busy, inputOutput, full].includes(codeOf(error) ?? 0) || passing.includes(code);
}

const passing = ['EDQUOT', 'EIO', 'EMFILE', 'ENFILE', 'ENOMEM', 'ENOSPC'];

/** A disk failure is `Unavailable`: it passes when an operator repairs it. */
export function translateSqlite(error: unknown, isCommit: boolean): unknown {
  const code = codeOf(error);
  const problem = code === null ? undefined : problems[code];
  if (problem === undefined) return error;
  // SQLite rolls back on a full disk. After other disk errors, a commit's outcome is unknown.
  if (isCommit && code === inputOutput) return new OutcomeUnknown(error);
  return new Unavailable(problem, 1, error);
}

const busy = 5;
const readOnly = 8;
const inputOutput = 10;
const full = 13;
const cannotOpen = 14;
/** SQLITE_IOERR_SHMSIZE: the index of the log cannot grow. */
const noRoomForIndex = 4874;

const problems: Readonly<Record<number, string>> = {
  [busy]: 'another program keeps the database locked',
  [readOnly]: 'the database cannot be written, it is read-only',
  [inputOutput]: "the disk of the control plane's database fails",
  [full]: "the disk of the control plane's database is full",
  [cannotOpen]: "the files of the control plane's database cannot be opened",
};

/** SQLite's primary result code ("Result and Error Codes" in its documentation), or null. */
function codeOf(error: unknown): number | null {
  if (!(error instanceof Error && 'errcode' in error)) return null;
  return error.errcode === noRoomForIndex ? full : Number(error.errcode) & 0xff;
}
