import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CpnError } from '../../../../src/core/errors/index.ts';
import { describeDrop } from '../../../../src/core/forward/foreign/describe-drop.ts';
import { findForwardDrops } from '../../../../src/core/forward/foreign/find-drops.ts';
import type { ForwardPath } from '../../../../src/core/forward/foreign/path.ts';
import { parseFilterTables } from '../../../../src/host/linux/nft/filter-tables.ts';
import { prefix } from '../../../core/samples.ts';

/**
 * What `nft --json list ruleset` (nftables 1.0.6) printed in a namespace: docker's rules as its iptables backend writes them
 * (28.0), firewalld 1.3.3 with eth0 and eth1 in its zone public, ufw 0.36.2 as it comes, each before and after a person did
 * what it takes to let cpn0 through; and tables that use what nft has and iptables has not.
 */
const recorded = (name: string) => readFile(join(import.meta.dirname, 'rulesets', `${name}.ruleset`), 'utf8');

const [network, lan] = [prefix('10.77.0.0/24'), prefix('192.168.50.0/24')];

/** From the tunnel to a LAN behind `card`, and the answers. */
const ways = (card: string | null, link = 'cpn0'): ForwardPath[] => [
  { iif: link, oif: card, from: network, to: lan, state: 'new' },
  { iif: card, oif: link, from: lan, to: network, state: 'established' },
];

const drops = async (name: string, card: string | null, link = 'cpn0') =>
  findForwardDrops(parseFilterTables(await recorded(name)), link, ways(card, link));

/** Tables as nft prints them, of which the first is `inet t` with the chain `f` and these rules in it. */
const table = (rules: readonly unknown[], policy = 'drop', more: readonly unknown[] = []) =>
  JSON.stringify({
    nftables: [
      { table: { family: 'inet', name: 't' } },
      { chain: { family: 'inet', table: 't', name: 'f', type: 'filter', hook: 'forward', prio: 0, policy } },
      ...rules.map((expr) => ({ rule: { family: 'inet', table: 't', chain: 'f', expr } })),
      ...more,
    ],
  });

/** The states of the paths that get through such tables. */
const open = (...args: Parameters<typeof table>) => {
  const closed = findForwardDrops(parseFilterTables(table(...args)), 'cpn0', ways('eth1')).flatMap(
    (each) => each.paths,
  );
  return ways('eth1').flatMap(({ state }) => (closed.some((each) => each.state === state) ? [] : [state]));
};

const match = (left: object, right: unknown, op = '==') => ({ match: { op, left, right } });
const from = (right: unknown, op?: string) => match({ payload: { protocol: 'ip', field: 'saddr' } }, right, op);
const iif = (right: unknown, op?: string) => match({ meta: { key: 'iifname' } }, right, op);
const oif = (right: unknown, op?: string) => match({ meta: { key: 'oifname' } }, right, op);
const state = (right: unknown, op = 'in') => match({ ct: { key: 'state' } }, right, op);
const xt = (name: string, type = 'match') => ({ xt: { type, name } });
const port22 = match({ payload: { protocol: 'tcp', field: 'dport' } }, 22);
const [accept, drop, count] = [{ accept: null }, { drop: null }, { counter: { packets: 0, bytes: 0 } }];

describe('what other programs drop', () => {
  test.each([
    [
      'docker',
      'eth1',
      'packets to and from 192.168.50.0/24 do not get through nft table ip filter, probably made by docker (policy drop of chain FORWARD); "iptables -I DOCKER-USER -i cpn0 -j ACCEPT && iptables -I DOCKER-USER -o cpn0 -j ACCEPT" lets them through',
    ],
    [
      'ufw',
      'eth1',
      'packets to 192.168.50.0/24 do not get through nft table ip filter, probably made by ufw (policy drop of chain FORWARD); "ufw route allow in on cpn0" lets them through',
    ],
    [
      'firewalld',
      'eth2',
      'packets to 192.168.50.0/24 do not get through nft table inet firewalld, probably made by firewalld (chain filter_FWD_public rejects them); "firewall-cmd --permanent --zone=trusted --add-interface=cpn0 && firewall-cmd --reload" lets them through',
    ],
  ])('is found in the rules of %s', async (name, card, words) => {
    expect((await drops(name, card)).map((drop) => `${describeDrop(drop)}; ${drop.remedy}`)).toEqual([words]);
  });

  test.each([
    ['docker-let', 'eth1'],
    ['docker-let', null],
    ['ufw-let', 'eth1'],
    ['firewalld-trusted', 'eth2'],
    // Within one zone firewalld forwards, and what is in none is in the zone public.
    ['firewalld', 'eth1'],
    ['hand-made', 'eth1'],
  ])('is nothing with %s and a LAN at %s', async (name, card) => {
    expect(await drops(name, card)).toEqual([]);
  });

  test('is found in sets, maps and chains of nft, for an interface that they do not accept', async () => {
    const [first, ...rest] = await drops('hand-made', 'eth1', 'wg5');
    expect(rest).toEqual([]);
    expect(first).toMatchObject({
      table: 'home',
      chain: 'forward',
      reason: 'policy drop of chain forward',
      author: null,
    });
    expect(first?.paths.map((path) => path.state)).toEqual(['new']);
    expect(first?.remedy).toBe(
      '"nft insert rule inet home forward iifname wg5 accept && nft insert rule inet home forward oifname wg5 accept" lets them through',
    );
    expect((await drops('hand-made', 'eth1', 'br0')).length).toBe(0);
    expect((await drops('hand-made', 'eth1', 'eth0')).map(({ reason }) => reason)).toEqual([
      'chain forward drops them',
    ]);
  });

  test('does not come from our own tables, from dormant ones, or from other hooks', async () => {
    const names = parseFilterTables(await recorded('hand-made')).map(({ name }) => name);
    expect(names).toEqual(['home', 'cpn_cpn0', 'other']);
    expect(parseFilterTables(await recorded('docker')).map(({ name }) => name)).toEqual(['filter', 'nat']);
  });
});

describe('a rule', () => {
  test.each<[string, readonly unknown[], readonly string[]]>([
    ['that lets all through', [accept], ['new', 'established']],
    ['that counts', [count], []],
    ['for answers', [state(['established', 'related']), accept], ['established']],
    ['for answers, in a set', [state({ set: ['established', 'new'] }, '=='), accept], ['new', 'established']],
    ['for all but answers', [state('established', '!='), accept], ['new']],
    ['for answers, of iptables', [xt('conntrack'), count, accept], ['established']],
    ['with a comment of iptables', [xt('comment'), accept], ['new', 'established']],
    ['with something of iptables', [xt('physdev'), accept], []],
    ['for the tunnel', [iif('cpn0'), accept], ['new']],
    ['for a pattern', [iif('cpn*'), accept], ['new']],
    ['for all but a pattern', [iif('cpn*', '!='), accept], ['established']],
    ['for a set of interfaces', [oif({ set: ['cpn0', 'eth1'] }), accept], ['new', 'established']],
    ['for pairs of interfaces', [pairs('==', ['cpn0', 'eth1'], ['a', 'b']), accept], ['new']],
    ['for a range around the network', [from({ prefix: { addr: '10.0.0.0', len: 8 } }), accept], ['new']],
    ['for addresses around it', [from({ range: ['10.77.0.0', '10.77.0.255'] }), accept], ['new']],
    ['for all but the network', [from({ prefix: { addr: '10.77.0.0', len: 24 } }, '!='), accept], ['established']],
    ['for IPv6', [match({ payload: { protocol: 'ip6', field: 'saddr' } }, '::1', '!='), accept], []],
    ['for IPv4', [match({ meta: { key: 'nfproto' } }, 'ipv4'), accept], ['new', 'established']],
    ['at a pace', [{ limit: { rate: 5, per: 'second' } }, accept], []],
    ['with an unknown statement', [{ sorcery: 1 }, accept], []],
    // An operator has a rule for the tunnel.
    ['for a service at the tunnel', [iif('cpn0'), port22, accept], ['new']],
    ['for one peer', [from('10.77.0.5'), accept], ['new']],
    ['for a service anywhere', [port22, accept], []],
    ['that hands over to a program', [{ queue: null }], ['new', 'established']],
    ['in a map', [{ vmap: { key: { ct: { key: 'state' } }, data: { set: [['new', accept]] } } }], ['new']],
    ['in a map that is not there', [{ vmap: { key: { ct: { key: 'state' } }, data: '@no' } }], []],
    ['for a set that is not there', [iif('@no'), accept], []],
  ])('%s, where the policy is to drop', (_, rule, expected) => {
    expect(open([rule])).toEqual(expected);
  });

  test.each<[string, readonly unknown[], readonly string[]]>([
    ['that drops all', [drop], []],
    ['that rejects, of iptables', [count, xt('REJECT', 'target')], []],
    ['that logs, of iptables', [xt('LOG', 'target')], ['new', 'established']],
    ['that drops what belongs to no connection', [state('invalid'), drop], ['new', 'established']],
    ['that drops so, of iptables', [xt('conntrack'), drop], ['new', 'established']],
    ['that drops one peer', [from('10.77.0.5'), drop], ['new', 'established']],
    ['that drops a service', [iif('cpn0'), port22, drop], ['new', 'established']],
    ['that drops the tunnel', [iif('cpn0'), drop], ['established']],
    ['that returns', [{ return: null }], ['new', 'established']],
  ])('%s, where the policy is to accept', (_, rule, expected) => {
    expect(open([rule], 'accept')).toEqual(expected);
  });

  test('may jump to another chain, which returns or not, and ends in a loop', () => {
    const chain = (name: string, ...rules: readonly unknown[]) => [
      { chain: { family: 'inet', table: 't', name } },
      ...rules.map((expr) => ({ rule: { family: 'inet', table: 't', chain: name, expr } })),
    ];
    const to = (does: 'jump' | 'goto', target: string) => [{ [does]: { target } }];
    const empty = chain('g', [iif('eth9'), accept]);
    expect(open([to('jump', 'g'), [accept]], 'drop', empty)).toEqual(['new', 'established']);
    expect(open([to('goto', 'g'), [accept]], 'drop', empty)).toEqual([]);
    expect(open([to('jump', 'g')], 'accept', chain('g', [iif('cpn0'), drop]))).toEqual(['established']);
    expect(open([to('jump', 'g')], 'drop', chain('g', to('jump', 'g')))).toEqual(['new', 'established']);
    const deep = Array.from({ length: 30 }, (_, at) =>
      chain(`g${at}`, to('jump', `g${at + 1}`), to('jump', `g${at + 1}`)),
    );
    expect(open([to('jump', 'g0')], 'drop', deep.flat())).toEqual(['new', 'established']);
  });
});

describe('parseFilterTables', () => {
  test('parses any text, or throws a CpnError', () => {
    const part = fc.constantFrom('iifname', 'cpn0', '10.0.0.0/33', '@s', 'established', '::1', 7, null);
    const { left } = fc.letrec((tie) => ({
      left: fc.oneof(
        { maxDepth: 4 },
        part,
        fc.dictionary(
          fc.constantFrom(
            ...['meta', 'key', 'ct', 'payload', 'protocol', 'field', 'set', 'prefix', 'addr', 'len', 'range', 'elem'],
            ...[
              'val',
              'concat',
              'match',
              'op',
              'left',
              'right',
              'vmap',
              'data',
              'jump',
              'target',
              'accept',
              'drop',
              'xt',
            ],
          ),
          tie('left'),
          { maxKeys: 3 },
        ),
        fc.array(tie('left'), { maxLength: 3 }),
      ),
    }));
    fc.assert(
      fc.property(fc.array(left, { maxLength: 4 }), fc.jsonValue(), (expr, any) => {
        const text = table([expr], 'drop', [
          any,
          { rule: any },
          { set: { family: 'inet', table: 't', name: 's', elem: expr } },
        ]);
        try {
          findForwardDrops(parseFilterTables(text), 'cpn0', ways(null)).map(
            (drop) => `${describeDrop(drop)}; ${drop.remedy}`,
          );
        } catch (error) {
          expect(error).toBeInstanceOf(CpnError);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('escapes names for the terminal, and in suggested commands', () => {
    const name = '\u{1b}[31m$(reboot)';
    const text = table([[drop]]).replaceAll('"t"', JSON.stringify(name));
    const [found] = findForwardDrops(parseFilterTables(text), 'cpn0', ways('eth1'));
    expect(found).toMatchObject({ table: '\u{fffd}[31m$(reboot)', remedy: 'let cpn0 through there' });
  });
});

function pairs(op: string, ...values: readonly (readonly string[])[]) {
  const fields = [{ meta: { key: 'iifname' } }, { meta: { key: 'oifname' } }];
  return match({ concat: fields }, { set: values.map((concat) => ({ concat })) }, op);
}
