import { type CpnError, expectCpnError } from '../../core/errors/index.ts';

/** Runs `work`, and then `last` in any case. If both fail, throws the error of `work`. */
export async function finallyDo<T>(work: () => Promise<T>, last: () => Promise<unknown>): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    await last().catch(expectedError);
    throw error;
  }
  await last();
  return result;
}

/** Returns an error of the catalogue, for the `catch` of a promise. Throws any other error. */
export function expectedError(error: unknown): CpnError {
  return expectCpnError(error);
}
