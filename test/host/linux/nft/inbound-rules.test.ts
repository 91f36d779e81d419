import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { describeInbound, describeRemedy } from '../../../../src/core/forward/foreign/describe-drop.ts';
import { findInboundDrop } from '../../../../src/core/forward/foreign/find-inbound-drop.ts';
import type { InboundPath } from '../../../../src/core/forward/foreign/inbound-path.ts';
import { parseFilterTables } from '../../../../src/host/linux/nft/filter-tables.ts';
import { prefix } from '../../../core/samples.ts';

/** The rulesets that filter-tables.test.ts describes, with a rule more where a program was asked to open a port. */
async function recorded(name: string, more: readonly object[] = []): Promise<string> {
  const text = await readFile(join(import.meta.dirname, 'rulesets', `${name}.ruleset`), 'utf8');
  const { nftables } = JSON.parse(text);
  return JSON.stringify({ nftables: [...nftables, ...more] });
}

const path = (changes: Partial<InboundPath> = {}): InboundPath => ({
  ...{ iif: 'eth0', oif: '', from: prefix('0.0.0.0/0'), to: prefix('203.0.113.5/32'), state: 'new', port: 51820 },
  isRedirected: false,
  ...changes,
});
const drop = (text: string, ...paths: readonly InboundPath[]) =>
  findInboundDrop(parseFilterTables(text), paths.length > 0 ? paths : [path()]);

/** The table `inet t` with the chain `i` and these rules in it. */
const table = (rules: readonly unknown[], policy = 'drop', more: readonly unknown[] = []) =>
  JSON.stringify({
    nftables: [
      { table: { family: 'inet', name: 't' } },
      { chain: { family: 'inet', table: 't', name: 'i', type: 'filter', hook: 'input', prio: 0, policy } },
      ...rules.map((expr) => ({ rule: { family: 'inet', table: 't', chain: 'i', expr } })),
      ...more,
    ],
  });
const chain = (name: string, ...rules: readonly unknown[]) => [
  { chain: { family: 'inet', table: 't', name } },
  ...rules.map((expr) => ({ rule: { family: 'inet', table: 't', chain: name, expr } })),
];

const match = (left: object, right: unknown, op = '==') => ({ match: { op, left, right } });
const dport = (right: unknown, op?: string, protocol = 'udp') =>
  match({ payload: { protocol, field: 'dport' } }, right, op);
const iif = (right: unknown, op?: string) => match({ meta: { key: 'iifname' } }, right, op);
const from = (right: unknown, op?: string) => match({ payload: { protocol: 'ip', field: 'saddr' } }, right, op);
const l4 = (right: unknown, op?: string) => match({ meta: { key: 'l4proto' } }, right, op);
const state = (right: unknown, op = 'in') => match({ ct: { key: 'state' } }, right, op);
const dnat = match({ ct: { key: 'status' } }, 'dnat', 'in');
const xt = (name: string, type = 'match') => ({ xt: { type, name } });
const [accept, deny, count] = [{ accept: null }, { drop: null }, { counter: { packets: 0, bytes: 0 } }];
const lan = { prefix: { addr: '192.168.0.0', len: 16 } };

describe('what rules of other programs drop of UDP to the listen port', () => {
  test.each([
    [
      'ufw',
      'ufw drops UDP to port 51820 (nft table ip filter, policy drop of chain INPUT): other hosts cannot start a session with this one; "cpn set cpn0 --open-firewall" or "ufw allow 51820/udp" lets it in',
    ],
    [
      'firewalld',
      'firewalld rejects UDP to port 51820 (nft table inet firewalld, chain filter_IN_public): other hosts cannot start a session with this one; "cpn set cpn0 --open-firewall" or "firewall-cmd --zone=public --add-port=51820/udp && firewall-cmd --permanent --zone=public --add-port=51820/udp" lets it in',
    ],
  ])('is found in the default rules of %s', async (name, words) => {
    const found = drop(await recorded(name));
    expect(found && `${describeInbound(found)}; ${describeRemedy(found, 'cpn0')}`).toBe(words);
  });

  // Each as nft 1.0.6 prints what "ufw allow 51820/udp" and "firewall-cmd --add-port=51820/udp" add.
  test.each([
    ['ufw', { family: 'ip', table: 'filter', chain: 'ufw-user-input', expr: [dport(51820), count, accept] }],
    [
      'firewalld',
      { family: 'inet', table: 'firewalld', chain: 'filter_IN_public_allow', expr: [dport(51820), accept] },
    ],
  ])('is nothing where %s accepts the port, and still another port', async (name, rule) => {
    const text = await recorded(name, [{ rule }]);
    expect(drop(text)).toBeNull();
    expect(drop(text, path({ port: 51821 }))).toMatchObject({ port: 51821 });
  });

  test('is nothing with docker, which does not filter incoming packets', async () => {
    expect(drop(await recorded('docker'))).toBeNull();
  });

  test('suggests a command for plain tables, and for those of iptables', () => {
    const plain = drop(table([state(['established', 'related']), accept]));
    expect(plain && `${describeInbound(plain)}; ${describeRemedy(plain, 'cpn0')}`).toMatch(
      /^nft table inet t drops UDP to port 51820 \(policy drop of chain i\): .*; "nft insert rule inet t i udp dport 51820 accept" lets it in$/,
    );
    const iptables = table([]).replaceAll('"inet"', '"ip"').replaceAll('"t"', '"filter"').replaceAll('"i"', '"INPUT"');
    expect(drop(iptables)?.command).toBe('iptables -I INPUT -p udp --dport 51820 -j ACCEPT');
    const odd = drop(table([]).replaceAll('"t"', JSON.stringify('\u{1b}[31m$(reboot)')));
    expect(odd).toMatchObject({ table: '\u{fffd}[31m$(reboot)', command: null });
    expect(odd && `${describeInbound(odd)}; ${describeRemedy(odd, 'cpn0')}`).toMatch(
      /; accept UDP to port 51820 there$/,
    );
  });

  test('is nothing while one of the paths is open', () => {
    const text = table([[iif('eth1'), accept]]);
    expect(drop(text, path(), path({ iif: 'eth1' }))).toBeNull();
    expect(drop(text, path(), path({ iif: 'eth2' }))).not.toBeNull();
    expect(findInboundDrop(parseFilterTables(table([])), [])).toBeNull();
  });

  test('does not come from our own tables, from dormant ones, or from other hooks', () => {
    expect(drop(table([]).replaceAll('"t"', '"cpn_cpn0"'))).toBeNull();
    expect(drop(table([]).replace('"name":"t"', '"name":"t","flags":"dormant"'))).toBeNull();
    expect(drop(table([]).replace('"input"', '"forward"'))).toBeNull();
  });
});

describe('a rule', () => {
  const dropped = (rules: readonly unknown[], policy?: string) => drop(table(rules, policy)) !== null;

  test.each<[string, readonly unknown[]]>([
    ['for the port', [dport(51820), accept]],
    ['for a range of ports', [dport({ range: [51000, 52000] }), accept]],
    ['for a set of ports', [dport({ set: [22, 51820] }), accept]],
    ['for a port of any transport', [dport(51820, '==', 'th'), accept]],
    ['for all other ports than that of ssh', [dport(22, '!='), accept]],
    ['for UDP', [l4('udp'), accept]],
    ['for UDP by number', [l4(17), accept]],
    ['for another port that nft does not show', [l4('udp'), xt('multiport'), accept]],
    ['for a set that is not there', [dport('@open'), accept]],
    ['for some sources', [from(lan), accept]],
    ['for new connections', [state('new'), accept]],
    ['for a state that nft does not show, and the port', [dport(51820), xt('conntrack'), accept]],
    ['for an interface', [iif('eth0'), accept]],
    ['with something that is not known', [{ sorcery: 1 }, accept]],
    ['that hands over to a program', [{ queue: null }]],
    [
      'in a map',
      [{ vmap: { key: { payload: { protocol: 'udp', field: 'dport' } }, data: { set: [[51820, accept]] } } }],
    ],
    ['in a map that is not there', [{ vmap: { key: { payload: { protocol: 'udp', field: 'dport' } }, data: '@no' } }]],
    ['in a map with what is not known', [{ vmap: { key: { sorcery: 1 }, data: { set: [[1, accept]] } } }]],
  ])('%s may let it in, where the policy is to drop', (_, rule) => {
    expect(dropped([rule])).toBe(false);
  });

  test.each<[string, readonly unknown[]]>([
    ['for answers', [state(['established', 'related']), accept]],
    ['for answers, of iptables', [xt('conntrack'), count, accept]],
    ['for loopback', [iif('lo'), accept]],
    ['for another port', [dport(51821), accept]],
    ['for a TCP port', [dport(51820, '==', 'tcp'), accept]],
    ['for all TCP ports but one', [dport(22, '!=', 'tcp'), accept]],
    ['for ICMP', [l4({ set: ['icmp', 'ipv6-icmp'] }), accept]],
    ['for IPv6', [match({ meta: { key: 'nfproto' } }, 'ipv6'), accept]],
    ['for packets that were redirected', [dnat, accept]],
    ['for another interface', [iif('eth1'), accept]],
    ['that counts', [count]],
  ])('%s does not let it in, where the policy is to drop', (_, rule) => {
    expect(dropped([rule])).toBe(true);
  });

  test.each<[string, readonly unknown[], boolean]>([
    ['that drops all', [deny], true],
    ['that rejects, of iptables', [count, xt('REJECT', 'target')], true],
    ['that drops UDP', [l4('udp'), deny], true],
    ['that drops UDP but to a range', [l4('udp'), dport({ range: [51820, 51829] }, '!='), deny], false],
    ['that drops what belongs to no connection', [state('invalid'), deny], false],
    ['that drops at a pace', [{ limit: { rate: 5, per: 'second' } }, deny], false],
    ['that drops some sources', [from(lan), deny], false],
  ])('%s, where the policy is to accept', (_, rule, expected) => {
    expect(dropped([rule], 'accept')).toBe(expected);
  });

  test('may accept redirected packets, where the endpoint has another port than the listen port', () => {
    expect(drop(table([[dnat, accept]]), path({ isRedirected: true }))).toBeNull();
  });

  test('may jump to other chains, each of which a packet may traverse', () => {
    const to = (does: 'jump' | 'goto', target: string) => ({ [does]: { target } });
    const seen = (rules: readonly unknown[], more: readonly object[], policy = 'drop') =>
      drop(table(rules, policy, more))?.reason ?? null;
    expect(seen([[to('jump', 'g')]], chain('g', [dport(51820), accept]))).toBeNull();
    expect(seen([[from(lan), to('jump', 'g')]], chain('g', [accept]))).toBeNull();
    expect(seen([[to('jump', 'g')], [accept]], chain('g', [deny]), 'accept')).toBe('chain g');
    expect(seen([[to('goto', 'g')], [accept]], chain('g', [dport(22), accept]))).toBe('policy drop of chain i');
    expect(seen([[to('jump', 'g')], [deny]], chain('g', [{ return: null }], [accept]), 'accept')).toBe('chain i');
    expect(seen([[to('jump', 'g')], [accept]], chain('g', [from(lan), { return: null }], [deny]), 'accept')).toBeNull();
    expect(seen([[to('jump', 'g')]], chain('g', [to('jump', 'g')]))).toBeNull();
    expect(seen([[to('jump', 'gone')]], [])).toBeNull();
  });
});
