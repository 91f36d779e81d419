import type { LookupFunction } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { addressFinder } from '../../../src/api/http/find-addresses.ts';
import { address } from '../../core/samples.ts';

const resolved = { 'cp.example': [address('203.0.113.1'), address('2001:db8::1')] };
const saved = [
  { address: '203.0.113.1', family: 4 },
  { address: '2001:db8::1', family: 6 },
];
const current = [{ address: '203.0.113.7', family: 4 }];

const answers: LookupFunction = (_name, _options, done) => done(null, current);
const fails =
  (code: string): LookupFunction =>
  (_name, _options, done) =>
    done(Object.assign(new Error(code), { code }), []);

/** What a connection to `name` dials; the code of the error where there is nothing. */
function find(query: LookupFunction, { name = 'cp.example', isPlain = false } = {}): Promise<unknown> {
  return new Promise((done) => {
    const finder = addressFinder(resolved, isPlain, query);
    finder(name, { all: true }, (error, found) => done(error === null ? found : error.code));
  });
}

describe('the addresses of a control plane', () => {
  it('are those of the resolver where it answers', async () => {
    expect(await find(answers)).toEqual(current);
  });

  it('are those of before where no resolver answers', async () => {
    expect(await find(fails('EAI_AGAIN'))).toEqual(saved);
    expect(await find(fails('EAI_AGAIN'), { isPlain: true })).toEqual(saved);
    expect(await find(fails('EAI_AGAIN'), { name: 'other.example' })).toBe('EAI_AGAIN');
  });

  it('are those of before for another network’s resolver, which does not have the name, only with TLS', async () => {
    expect(await find(fails('ENOTFOUND'))).toEqual(saved);
    expect(await find(fails('ENOTFOUND'), { isPlain: true })).toBe('ENOTFOUND');
  });

  it('are those of before where the resolver takes long, and its late answer changes nothing', async () => {
    vi.useFakeTimers();
    try {
      let answerLate = () => {};
      const found = find((_name, _options, done) => {
        answerLate = () => done(null, current);
      });
      await vi.advanceTimersByTimeAsync(3_000);
      answerLate();
      expect(await found).toEqual(saved);
    } finally {
      vi.useRealTimers();
    }
  });

  it('are the loopback addresses for localhost, without a resolver', async () => {
    expect(await find(fails('ENOTFOUND'), { name: 'localhost' })).toMatchObject([{ family: 4 }, { family: 6 }]);
  });

  it('are given once, and one of them to a caller that wants no more', async () => {
    vi.useFakeTimers();
    try {
      const given: unknown[][] = [];
      let answer = () => {};
      const late: LookupFunction = (_name, _options, done) => {
        answer = () => done(null, '203.0.113.7', 4);
      };
      for (const [query, all] of [
        [late, false],
        [late, true],
        [fails('EAI_AGAIN'), false],
      ] as const) {
        addressFinder(resolved, false, query)('cp.example', { all }, (...found) => given.push(found));
        await vi.advanceTimersByTimeAsync(2_999);
        if (query === late) expect(given).toEqual([]);
        await vi.advanceTimersByTimeAsync(1);
        answer();
        await vi.advanceTimersByTimeAsync(60_000);
        expect(given.splice(0)).toEqual([all ? [null, saved] : [null, '203.0.113.1', 4]]);
      }
      addressFinder(resolved, false, late)('cp.example', {}, (...found) => given.push(found));
      answer();
      await vi.advanceTimersByTimeAsync(60_000);
      expect(given).toEqual([[null, '203.0.113.7', 4]]);
    } finally {
      vi.useRealTimers();
    }
  });
});
