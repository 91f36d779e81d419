import { describe, expect, it } from 'vitest';
import { describeMapAge, findMapEnd, isConfirmationDue } from '../../../src/core/map/map-age.ts';

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
  it('comes at half of the longest age, and says what follows', () => {
    expect(describeMapAge(host(hour), 9 * hour - 1)).toBeNull();
    expect(describeMapAge(host(hour), 9 * hour)).toMatchObject({
      isOver: false,
      found: expect.stringMatching(/at 1970-01-01T01:00:00.000Z; without another .* from 1970-01-01T17:00:00.000Z on$/),
    });
    expect(describeMapAge(host(hour), 17 * hour)).toMatchObject({
      isOver: true,
      found: expect.stringContaining('relays and serves nothing until it confirms it again'),
    });
    expect(describeMapAge(host(hour, null), 99 * hour)).toBeNull();
  });
});
