import { CpnError } from '../core/errors/index.ts';

/** The exit codes of the program. Scripts rely on them. */
export const exitCodes = { done: 0, failed: 1, usage: 2, pending: 3, refused: 4, unreachable: 5 } as const;

/** The only place that maps a failure to an exit code. */
export function exitCodeOf(error: unknown): number {
  if (!(error instanceof CpnError)) return exitCodes.failed;
  if (startFailures.includes(error.name)) return error.isRetryable ? exitCodes.failed : exitCodes.usage;
  return byName[error.name] ?? exitCodes.failed;
}

/** After `failed`, the unit of the control plane restarts it. After `usage`, a person must act. */
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
