import { describe, expect, it } from 'vitest';
import { adjustClock, serviceTimeOf } from '../../../src/core/map/service-time.ts';

const clock = { service: 1_000_000, uptime: 50 };

describe('the time of the service', () => {
  it('goes on with the clock of this host that is never set, whatever the wall clock shows', () => {
    expect(serviceTimeOf(clock, { now: 5, uptime: 50 })).toBe(1_000_000);
    for (const now of [0, 1_030_000, 9e12]) expect(serviceTimeOf(clock, { now, uptime: 80 })).toBe(1_030_000);
  });

  it('is the wall clock before the first reply and after a start of the host, and no less than was saved', () => {
    expect(serviceTimeOf(undefined, { now: 5, uptime: 80 })).toBe(5);
    expect(serviceTimeOf(clock, { now: 5, uptime: 10 })).toBe(5);
    expect(serviceTimeOf(undefined, { now: 5, uptime: 80 }, 700)).toBe(700);
  });
});

describe('the clock after a reply', () => {
  it('stays while replies show the same one within two seconds', () => {
    expect(adjustClock(clock, 1_032_000, 80)).toBe(clock);
    expect(adjustClock(clock, 1_028_000, 80)).toBe(clock);
    expect(adjustClock(clock, 1_032_001, 80)).toEqual({ service: 1_032_001, uptime: 80 });
    expect(adjustClock(clock, 1_031_900, 80)).toBe(clock);
    expect(adjustClock(clock, 1_028_100, 80)).toBe(clock);
    expect(adjustClock(clock, undefined, 80)).toBe(clock);
  });

  it('is that of the reply where it shows another time, is the first, or the host was started since', () => {
    expect(adjustClock(clock, 1_033_000, 80)).toEqual({ service: 1_033_000, uptime: 80 });
    expect(adjustClock(undefined, 7, 80)).toEqual({ service: 7, uptime: 80 });
    expect(adjustClock(clock, 1_000_000, 10)).toEqual({ service: 1_000_000, uptime: 10 });
    expect(adjustClock(undefined, undefined, 10)).toBeUndefined();
  });
});
