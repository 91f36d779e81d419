import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What a test recorded of one fault: a file of its own in the folder of a run. */
export interface Row {
  /** Its number in the catalogue. */
  readonly fault: number;
  /** What was done. */
  readonly how: string;
  /** Milliseconds from the injection until it was noticed, or null where that shows nowhere. */
  readonly detectedMs: number | null;
  /** Milliseconds from the injection until everything was as it should be again. */
  readonly repairedMs: number | null;
  /** Packets that unconcerned tunnels lost meanwhile; null where none was watched. */
  readonly lost: number | null;
  /** False too when the test never came to its end. */
  readonly survived: boolean;
}

/** A free path for a row in the folder of a run. */
export function pathOfRow(folder: string, fault: number): string {
  return join(folder, `${fault}-${randomUUID()}.json`);
}

/** Everything that was recorded in a run, by fault. */
export async function readRows(folder: string): Promise<Row[]> {
  const files = await readdir(folder);
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  const rows = texts.map((text): Row => JSON.parse(text));
  return rows.sort((a, b) => a.fault - b.fault || a.how.localeCompare(b.how));
}
