import { describe, expect, it } from 'vitest';
import { createQueryLimit } from '../../../src/host/name-server/query-limit.ts';

/** A limit with a clock that only `wait` advances. */
function limitWithClock(mostSources = 1024) {
  let time = 0;
  const take = createQueryLimit(() => time, { perSecond: 200, burst: 400, mostSources });
  const wait = (ms: number) => {
    time += ms;
  };
  const taken = (source: string, most = 1000) =>
    Array.from({ length: most }, () => take(source)).filter(Boolean).length;
  return { take, wait, taken };
}

describe('the limit of queries', () => {
  it('allows a burst, then the rate', () => {
    const { taken, wait } = limitWithClock();
    expect(taken('10.77.0.1')).toBe(400);
    wait(100);
    expect(taken('10.77.0.1')).toBe(20);
    wait(3_600_000);
    expect(taken('10.77.0.1')).toBe(400);
  });

  it('is of each source alone', () => {
    const { taken } = limitWithClock();
    expect([taken('10.77.0.1'), taken('10.77.0.2'), taken('constructor')]).toEqual([400, 400, 400]);
  });

  it('gives no source a new burst because of many others', () => {
    const { taken, take, wait } = limitWithClock(8);
    expect(taken('10.77.0.1')).toBe(400);
    for (let at = 0; at < 1000; at += 1) take(`10.78.0.${at}`);
    expect(taken('10.77.0.1')).toBe(0);
    // The 993 sources beyond the eighth had one burst between them.
    expect(taken('10.79.0.1')).toBe(0);
    wait(1999);
    expect(taken('10.77.0.1')).toBe(399);
    wait(3000);
    expect(taken('10.79.0.1')).toBe(400);
    expect(taken('10.79.0.2')).toBe(400);
  });
});
