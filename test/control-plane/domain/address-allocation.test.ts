import fc from 'fast-check';
import { expect, test } from 'vitest';
import { allocate, capacityOf } from '../../../src/control-plane/domain/address-allocation.ts';
import { type Address, covers, maskPrefix, rangeOf } from '../../../src/core/net/cidr.ts';

const range = fc
  .tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 0, max: 255 }), fc.integer({ min: 27, max: 30 }))
  .map(([second, last, bits]) => maskPrefix(`10.${second}.7.${last}/${bits}`));

/** What a network records: how many addresses it gave for the first time, and which came back, in that order. */
class Records {
  given = 0;
  returned: Address[] = [];
  readonly held: Address[] = [];

  take(of: ReturnType<typeof maskPrefix>): Address | null {
    const next = allocate({ range: of, given: this.given, returned: this.returned[0] ?? null });
    if (!next) return null;
    if (next.fresh) this.given += 1;
    else this.returned.shift();
    this.held.push(next.address);
    return next.address;
  }

  giveBack(index: number): void {
    const [address] = this.held.splice(index % this.held.length, 1);
    if (address) this.returned.push(address);
  }
}

test('gives the addresses in order, never the first nor the last, and then says that the range is full', () => {
  const records = new Records();
  const four = maskPrefix('10.0.0.8/30');
  expect([records.take(four), records.take(four), records.take(four)]).toEqual(['10.0.0.9', '10.0.0.10', null]);
});

test('an allocation crosses octets', () => {
  const wide = maskPrefix('10.0.0.0/8');
  expect(allocate({ range: wide, given: 255, returned: null })).toEqual({ address: '10.0.1.0', fresh: true });
  expect(capacityOf(wide)).toBe(2 ** 24 - 2);
});

test('an address that came back is given last, and the one that came back longest ago first', () => {
  const records = new Records();
  const eight = maskPrefix('192.168.1.0/29');
  for (let count = 0; count < 4; count += 1) records.take(eight);
  records.giveBack(2);
  records.giveBack(0);
  expect([1, 2, 3, 4, 5].map(() => records.take(eight))).toEqual([
    '192.168.1.5',
    '192.168.1.6',
    '192.168.1.3',
    '192.168.1.1',
    null,
  ]);
});

test('whatever comes and goes, no address is held twice, and only a full range refuses', () => {
  fc.assert(
    fc.property(range, fc.array(fc.option(fc.nat(100), { freq: 2 }), { maxLength: 120 }), (of, steps) => {
      const records = new Records();
      const { first, last } = rangeOf(of);
      for (const step of steps) {
        if (step !== null && records.held.length > 0) {
          records.giveBack(step);
          continue;
        }
        const wasFull = records.held.length === capacityOf(of);
        const address = records.take(of);
        expect(address === null).toBe(wasFull);
        if (address === null) continue;
        expect(covers(of, address)).toBe(true);
        expect([first, last]).not.toContain(rangeOf(maskPrefix(`${address}/32`)).first);
        expect(new Set(records.held).size).toBe(records.held.length);
      }
    }),
  );
});

test('as long as one address was never given, none is given a second time', () => {
  fc.assert(
    fc.property(range, fc.integer({ min: 0, max: 29 }), (of, given) => {
      const next = allocate({ range: of, given, returned: '10.9.9.9' as Address });
      expect(next?.fresh).toBe(given < capacityOf(of));
    }),
  );
});
