import { describe, expect, it } from 'vitest';
import { mergeAddresses, usableFirst, withFirst, withLast } from '../../../src/core/names/resolved-names.ts';
import { address } from '../samples.ts';

const [six, four, other] = [address('2001:db8::7'), address('198.51.100.7'), address('198.51.100.8')];
const all = [six, four, other];

describe('the addresses of a name', () => {
  it('begin with those that can be used', () => {
    const resolved = { 'edge.example': all, 'one.example': [six] };
    expect(usableFirst(resolved, (each) => each !== six)).toEqual({
      resolved: { 'edge.example': [four, other, six], 'one.example': [six] },
      avoided: new Set([six]),
    });
  });

  it('keep their order where none can be used, and where all can', () => {
    expect(usableFirst({ name: all }, () => false).resolved).toEqual({ name: all });
    expect(usableFirst({ name: all }, () => true)).toEqual({ resolved: { name: all }, avoided: new Set() });
  });

  it('begin with the one that answers', () => {
    expect(withFirst(all, other)).toEqual([other, six, four]);
    expect(withFirst(all, six)).toBe(all);
    expect(withFirst(all, address('192.0.2.1'))).toBe(all);
  });

  it('end with a silent one', () => {
    expect(withLast(all, six, four)).toEqual([four, other, six]);
    expect(withLast(all, six, other)).toEqual([other, four, six]);
  });
});

describe('a resolver that gives its addresses in another order', () => {
  it('changes nothing', () => expect(mergeAddresses(all, [other, four, six])).toBe(all));

  it('counts after this host moved', () => {
    expect(mergeAddresses(all, [four, six], true)).toEqual([four, six, other]);
    expect(mergeAddresses(all, [six, four], true)).toBe(all);
    expect(mergeAddresses(all, [], true)).toBe(all);
  });
});

it('the only address of a name is used, and never avoided', () => {
  const [only, ...two] = ['198.51.100.1', '198.51.100.2', '198.51.100.3'].map(address);
  const known = { one: only === undefined ? [] : [only], two, none: [] };
  expect(usableFirst(known, () => false)).toEqual({ resolved: known, avoided: new Set(two) });
});
