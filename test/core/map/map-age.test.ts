import { describe, expect, it } from 'vitest';
import { findMapAge, findMapEnd, isConfirmationDue } from '../../../src/core/map/map-age.ts';

const hour = 3_600_000;
const host = (confirmed?: number, maxAge: number | null = 16 * 3600) => ({
  membership: { map: maxAge === null ? {} : { maxAge } },
  ...(confirmed !== undefined && { confirmed }),
});

describe('the end of a map', () => {
  it('is its longest age after the last saved confirmation, and past without one', () => {
    expect(findMapEnd(host(hour))).toBe(17 * hour);
    expect(findMapEnd(host())).toBe(16 * hour);
    expect(findMapEnd(host(hour, null))).toBeNull();
  });

  it('is put off by a confirmation after a sixteenth of the longest age', () => {
    expect(isConfirmationDue(host(hour), 2 * hour - 1)).toBe(false);
    expect(isConfirmationDue(host(hour), 2 * hour)).toBe(true);
    expect(isConfirmationDue(host(), 1)).toBe(true);
    expect(isConfirmationDue(host(hour, null), 9 * hour)).toBe(false);
    // The clock of the service was wrong before.
    expect(isConfirmationDue(host(hour), 0)).toBe(true);
  });
});

describe('the warning of a connector', () => {
  it('comes at half of the longest age, with the end', () => {
    const times = { confirmedAt: '1970-01-01T01:00:00.000Z', endsAt: '1970-01-01T17:00:00.000Z' };
    expect(findMapAge(host(hour), 9 * hour - 1)).toBeNull();
    expect(findMapAge(host(hour), 9 * hour)).toEqual({ isOver: false, ...times });
    expect(findMapAge(host(hour), 17 * hour)).toEqual({ isOver: true, ...times });
    expect(findMapAge(host(hour, null), 99 * hour)).toBeNull();
  });
});
