import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import * as catalogue from '../../../src/core/errors/index.ts';
import { formatState } from '../../../src/store/state/state-file.ts';
import { Canaries } from '../../secrets/canaries.ts';
import { state } from '../../store/samples.ts';

const enrollment = { ...state.enrollment, idempotencyKey: 'idempotency-canary' };
const canaries = new Canaries();
canaries.addState(formatState({ ...state, enrollment }));
canaries.addText('token', 'cpn_canary-of-an-argument');

const classes = Object.entries(catalogue).filter(
  ([, each]) => typeof each === 'function' && each.prototype instanceof catalogue.CpnError,
) as [string, new (...args: unknown[]) => catalogue.CpnError][];

/** A text, a list and a record at once, that knows secrets: whatever a constructor takes it for. */
function makeArgument(): unknown {
  const { idempotencyKey: _, ...rest } = enrollment;
  const knows = { secret: new Secret('cpn_canary-of-an-argument'), state: { ...state, enrollment: rest } };
  const list = { join: () => 'a list', map: () => [], length: 1, [Symbol.iterator]: Array.prototype[Symbol.iterator] };
  return {
    ...{ ...knows, ...list, toString: () => 'a text', toJSON: () => knows, cause: knows },
    ...{ trim: () => 'a text', replaceAll: () => 'a text', replace: () => 'a text' },
  };
}

test('there are errors to look at', () => {
  expect(classes.length).toBeGreaterThan(20);
});

test.each(classes)('%s shows no secret of what it was made of or caused by', (name, Failure) => {
  const argument = makeArgument();
  const error = new Failure(...Array(6).fill(argument));
  const chain = new catalogue.UnreadableFile('a file', 'is damaged', 'look', new Error('inside', { cause: error }));
  expect(error.name).toBe(name);
  for (const each of [error, chain, new Error('around', { cause: chain })]) {
    const shown = [
      String(each),
      each.stack ?? '',
      JSON.stringify(each),
      JSON.stringify(each, [...Object.getOwnPropertyNames(each), 'cause']),
      inspect(each, { depth: 20, showHidden: true, getters: true }),
    ];
    for (const text of shown) expect(canaries.find(text)).toEqual([]);
  }
});

test('the same secrets are found where they are revealed', () => {
  expect(canaries.find(formatState(state)).length).toBeGreaterThan(4);
  expect(canaries.find(`${new Secret('cpn_canary-of-an-argument').reveal()}`)).toEqual(['token']);
});
