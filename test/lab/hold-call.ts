import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { onTestFinished } from 'vitest';

/** A call that stands still. */
export interface HeldCall {
  /** Resolves once the call is made, and before it does anything. */
  readonly reached: Promise<void>;
  /** Lets it go on; it is not held again. */
  release(): void;
}

type Call = 'open' | 'readFile' | 'rename' | 'stat' | 'rm';

/** Holds the call of a function of node:fs/promises that is the `nth` from now on, until the test lets it go on, or ends. */
export function holdCall(name: Call, nth = 1): HeldCall {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let calls = 0;
  replaceCall(name, (original) => async (...given) => {
    calls += 1;
    if (calls === nth) {
      reached.resolve();
      await released.promise;
    }
    return original(...given);
  });
  onTestFinished(() => released.resolve());
  return { reached: reached.promise, release: () => released.resolve() };
}

type Whatever = (...given: unknown[]) => Promise<unknown>;

/** Replaces a function of node:fs/promises for every module, until the test ends. */
export function replaceCall(name: Call, by: (original: Whatever) => Whatever): void {
  const functions = promises as unknown as Record<Call, Whatever>;
  const original = functions[name];
  functions[name] = by(original);
  syncBuiltinESMExports();
  onTestFinished(() => {
    functions[name] = original;
    syncBuiltinESMExports();
  });
}
