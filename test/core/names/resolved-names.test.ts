import { describe, expect, it } from 'vitest';
import {
  addressesOf,
  mergeAddresses,
  sameResolved,
  withoutCarried,
  withoutExpired,
} from '../../../src/core/names/resolved-names.ts';
import { address, prefix } from '../samples.ts';

const [a, b, c] = ['198.51.100.1', '198.51.100.2', '198.51.100.3'].map(address) as [never, never, never];

describe('the addresses of a name', () => {
  it('stay as they are when no answer comes', () => {
    const known = [a, b];
    expect(mergeAddresses(known, [])).toBe(known);
  });

  it('stay as they are when the answer has another order', () => {
    const known = [a, b];
    expect(mergeAddresses(known, [b, a])).toBe(known);
  });

  it('keep the one in use in front while it is among the answers', () => {
    expect(mergeAddresses([a], [b, a])).toEqual([a, b]);
  });

  it('begin with the answer once the one in use is not among them, and keep the old', () => {
    expect(mergeAddresses([a, b], [c])).toEqual([c, a, b]);
    expect(mergeAddresses([a, b], [b])).toEqual([b, a]);
  });

  it('are no longer those that the resolver does not give, but for those to keep', () => {
    const known = [a, b, c];
    expect(withoutExpired(known, [a], [])).toEqual([a]);
    expect(withoutExpired(known, [c], [b])).toEqual([b, c]);
    expect(withoutExpired(known, [], [])).toBe(known);
    expect(withoutExpired(known, [a, c], [b])).toBe(known);
  });

  it('do not grow without end', () => {
    const many = Array.from({ length: 100 }, (_, index) => address(`198.51.100.${index}`));
    expect(many.reduce((known: readonly never[], one) => mergeAddresses(known, [one]) as never[], [])).toHaveLength(16);
  });

  it('are none that the tunnel carries itself, if there is another one', () => {
    const carried = [prefix('198.51.100.2/31')];
    expect(withoutCarried([a], [b, c], carried)).toEqual([]);
    expect(withoutCarried([b, a], [c, a], carried)).toEqual([a]);
    expect(withoutCarried([], [b], carried)).toEqual([b]);
    expect(withoutCarried([b], [c], carried)).toEqual([c]);
  });

  it('are compared name by name', () => {
    expect(sameResolved({ x: [a] }, { x: [a] })).toBe(true);
    expect(sameResolved({ x: [a] }, { x: [a, b] })).toBe(false);
    expect(sameResolved({ x: [a] }, { y: [a] })).toBe(false);
    expect(sameResolved({ x: [a] }, {})).toBe(false);
    expect(sameResolved({}, { x: [a] })).toBe(false);
    expect(sameResolved({ x: [a] }, { x: [a], y: [b] })).toBe(false);
    expect(sameResolved({ x: [a], y: [b] }, { y: [b], x: [a] })).toBe(true);
    // A peer may have any name as its endpoint.
    expect(sameResolved({ constructor: [a] }, { x: [a] })).toBe(false);
  });
});

it('are those of a name like others, though an object of JavaScript has a field of that name', () => {
  for (const name of ['constructor', 'toString', 'hasOwnProperty']) {
    expect(addressesOf(name, {})).toEqual([]);
    expect(addressesOf(name, { [name]: [address('203.0.113.9')] })).toEqual(['203.0.113.9']);
  }
});
