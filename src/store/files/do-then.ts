import { type CpnError, expectCpnError } from '../../core/errors/index.ts';

/** Does `work`, and afterwards `last` in any case; where both fail, it throws the error of `work`. */
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

/** Returns an error of the program's catalogue, for a promise's `catch`; throws any other. */
export function expectedError(error: unknown): CpnError {
  return expectCpnError(error);
}
