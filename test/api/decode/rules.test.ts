import { describe, expect, it } from 'vitest';
import { Field } from '../../../src/api/decode/field.ts';
import { decodeRules } from '../../../src/api/decode/rules.ts';
import { BadReply } from '../../../src/core/errors/index.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { network, peer, prefix } from '../../core/samples.ts';

const decode = (rules: unknown, base?: NetworkMap) =>
  decodeRules(new Field({ rules }, '', { url: 'https://203.0.113.99', secrets: [] }), base).rules;
const rule = (changes: object = {}) => ({
  ...{
    name: 'web',
    from: ['peer:17', 'tag:ops'],
    to: ['route:192.168.50.0/24'],
    protocol: 'tcp',
    ports: ['80', '90-99'],
  },
  ...changes,
});
const closed = (...rules: readonly unknown[]) => ({ mode: 'closed', rules });

describe('the rules of a map', () => {
  it('are read with all their parts', () => {
    expect(decode(closed(rule()))).toEqual({
      rules: [
        {
          name: 'web',
          from: [
            { kind: 'peer', id: 17 },
            { kind: 'tag', tag: 'ops' },
          ],
          to: [{ kind: 'route', prefix: prefix('192.168.50.0/24') }],
          protocol: 'tcp',
          ports: [
            { first: 80, last: 80 },
            { first: 90, last: 99 },
          ],
        },
      ],
      requiresEnforcement: false,
    });
    expect(decode({ ...closed(), require_enforcement: true })).toEqual({ rules: [], requiresEnforcement: true });
  });

  it.each<[string, unknown]>([
    ['absent', undefined],
    ['null', null],
    ['those of another service', [{ allow: 'all' }]],
    ['of another form', { rules: [] }],
    ['of an open network', { mode: 'open', rules: [rule()] }],
  ])('are none if they are %s', (_, rules) => {
    expect(decode(rules)).toBeUndefined();
  });

  it('close the network in any mode but open', () => {
    expect(decode({ mode: 'guarded', rules: [] })).toEqual({ rules: [], requiresEnforcement: false });
  });

  it.each<[string, object, object | null]>([
    ['an unknown selector', rule({ from: ['group:x', 'any'] }), { from: [{ kind: 'any' }] }],
    ['a selector that is no text', rule({ from: [7, 'any'] }), { from: [{ kind: 'any' }] }],
    ['a prefix with host bits', rule({ to: ['cidr:192.168.50.1/24'] }), { to: [] }],
    ['an unknown protocol', rule({ protocol: 'sctp' }), null],
    ['a port that is none', rule({ ports: ['0'] }), null],
    ['a port in nft syntax', rule({ ports: ['22 } accept #'] }), null],
    ['no name', rule({ name: undefined, ports: ['x'] }), null],
  ])('allow less with %s, and name the rule', (_, unusable, left) => {
    const read = decode(closed(unusable, rule({ name: 'other' })));
    expect(read?.rules.map(({ name }) => name)).toEqual([...(left ? ['web'] : []), 'other']);
    if (left) expect(read?.rules[0]).toMatchObject(left);
    expect(read?.unread).toEqual([(unusable as { name?: string }).name ?? '1']);
  });

  it.each([
    { mode: 'closed' },
    { mode: 'closed', rules: 'none' },
    closed(...Array.from({ length: 4001 }, () => rule())),
  ])('without a usable list of a closed network are an error: nothing shows what it allows', (rules) => {
    expect(() => decode(rules)).toThrow(BadReply);
  });

  it('stay those of the base in a delta without the list', () => {
    const base = network([peer(1)], { rules: { rules: [], requiresEnforcement: true } });
    expect(decode({ mode: 'closed' }, base)).toEqual({ rules: [], requiresEnforcement: false });
    expect(decode(undefined, base)).toBeUndefined();
    expect(() => decode({ mode: 'closed' }, network([peer(1)]))).toThrow(BadReply);
  });
});
