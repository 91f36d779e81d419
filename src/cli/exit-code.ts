import { CpnError } from '../core/errors/index.ts';

/** What the program ends with; scripts rely on it. */
export const exitCodes = { done: 0, failed: 1, usage: 2, pending: 3, refused: 4, unreachable: 5 } as const;

/** The one place where a failure becomes an exit code. */
export function exitCodeOf(error: unknown): number {
  if (!(error instanceof CpnError)) return exitCodes.failed;
  if (startFailures.includes(error.name)) return error.isRetryable ? exitCodes.failed : exitCodes.usage;
  return byName[error.name] ?? exitCodes.failed;
}

/** Of `cpn control-plane serve`. Its unit starts it again after `failed`, and not after `usage`: then a person must act first. */
const startFailures = ['CannotListen', 'UnusableDatabase', 'UnusableFile'];

const byName: Readonly<Record<string, number>> = {
  InvalidValue: exitCodes.usage,
  WrongUsage: exitCodes.usage,
  Unsupported: exitCodes.usage,
  NotJoined: exitCodes.usage,
  NotOurs: exitCodes.usage,
  Refused: exitCodes.refused,
  Unreachable: exitCodes.unreachable,
  Intercepted: exitCodes.unreachable,
  ProxyFailed: exitCodes.unreachable,
  ForeignListener: exitCodes.unreachable,
  RotationPending: exitCodes.unreachable,
};
