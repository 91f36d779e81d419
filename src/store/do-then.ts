import { CpnError } from '../core/errors.ts';

/** Does `work`, and afterwards `last` in any case; where both fail, what went wrong with the work is what went wrong. */
export async function doThen<T>(work: () => Promise<T>, last: () => Promise<unknown>): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    await last().catch(foreseen);
    throw error;
  }
  await last();
  return result;
}

/** Returns a failure that this program foresees, for a promise's `catch`; throws any other. */
export function foreseen(error: unknown): CpnError {
  if (error instanceof CpnError) return error;
  throw error;
}
