import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { overlaps, type Prefix } from '../../src/core/cidr.ts';
import { packetRules } from '../../src/core/firewall.ts';
import { type Forwarding, forwardingRules } from '../../src/core/forwarding-rules.ts';
import { desireFor, dialled, network, networksWithExit, peer, prefix } from './samples.ts';

const [lan, annex] = [prefix('192.168.50.0/24'), prefix('192.168.60.0/24')];
const self = peer(1, { type: 'connector', endpoint: dialled(1), routes: [lan] });
const other = peer(2, { type: 'connector', endpoint: dialled(2), routes: [annex] });
const laptop = peer(3);
const map = network([self, other, laptop], { routes: [lan, annex] });

/** The rules as nft gets them, without their comments. */
function textsOf(changes: Partial<Forwarding> = {}): string[] {
  const rules = forwardingRules({ map, self, options: { masquerade: true }, detours: [], ...changes });
  return packetRules({ link: 'cpn0', rules }).map(({ chain, text }) => `${chain}: ${text}`);
}

describe('the packet rules of a connector', () => {
  it('let through what is advertised, in this order', () => {
    const network = '10.77.0.0/24, 192.168.60.0/24';
    expect(textsOf()).toEqual([
      'forward: oifname "cpn0" tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu',
      'forward: iifname "cpn0" tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu',
      'forward: iifname "cpn0" ct state established,related accept',
      'forward: iifname "cpn0" ct status dnat ct original ip daddr 10.77.0.1 accept',
      `forward: iifname "cpn0" oifname "cpn0" ip saddr { ${network} } ip daddr { ${network} } accept`,
      `forward: iifname "cpn0" ip saddr { ${network} } ip daddr 192.168.50.0/24 accept`,
      `forward: iifname != "cpn0" oifname "cpn0" ip saddr 192.168.50.0/24 ip daddr { ${network} } accept`,
      'forward: iifname "cpn0" reject with icmpx admin-prohibited',
      `postrouting: oifname "cpn0" ip saddr { ${network} } ip saddr != 10.77.0.1 masquerade`,
      'postrouting: ip saddr 10.77.0.0/24 ip daddr 192.168.50.0/24 oifname != "cpn0" masquerade',
      `postrouting: oifname "cpn0" ip saddr 192.168.50.0/24 ip daddr { ${network} } masquerade`,
    ]);
  });

  it('masquerade nothing but what is relayed where nobody wants it', () => {
    const masquerading = textsOf({ options: { masquerade: false } }).filter((text) => text.includes('masquerade'));
    expect(masquerading).toEqual([expect.stringContaining('ip saddr != 10.77.0.1 masquerade')]);
  });

  it('refuse, before anything is accepted, what other connectors hand on for peers that do not answer here either', () => {
    const detour = textsOf({ detours: [laptop] }).filter((text) => !textsOf().includes(text));
    expect(detour).toEqual([
      'forward: iifname "cpn0" oifname "cpn0" ip saddr 10.77.0.2/32 ip daddr 10.77.0.3/32 reject with icmpx host-unreachable',
    ]);
    const verdicts = textsOf({ detours: [laptop] }).map((text) => text.split(' ').at(-1));
    expect(verdicts.indexOf('host-unreachable')).toBeLessThan(verdicts.indexOf('accept'));
  });

  it('follow from what is seen to fail', () => {
    const failing = (back: boolean) =>
      desireFor(
        self,
        { ...map, peers: [self, other, peer(3, { endpoint: dialled(3) })] },
        {
          failed: [{ peer: 3, back }],
        },
      ).firewall?.rules.map(({ rule }) => rule);
    expect(failing(false)).toContain('refuse-detour');
    expect(failing(true)).not.toContain('refuse-detour');
  });

  it('keep forwarding to a route that this connector took out of service', () => {
    expect(textsOf({ self: { ...self, withdrawn: [lan, map.cidr] } })).toEqual(textsOf());
  });

  it('are none for a LAN where no route is served', () => {
    const rules = forwardingRules({ map, self: { ...self, routes: [] }, options: { masquerade: true }, detours: [] });
    expect(rules.map(({ rule }) => rule)).toEqual([
      'clamp-mss',
      'clamp-mss',
      'accept-replies',
      'accept-published',
      'accept-relayed',
      'refuse-rest',
      'masquerade-relayed',
    ]);
  });

  it('take an advertised default route for a way out, and for no way in', () => {
    const all = prefix('0.0.0.0/0');
    const texts = textsOf({ map: { ...map, routes: [lan, all] }, self: { ...self, routes: [lan] } });
    expect(texts).toContain('forward: iifname "cpn0" oifname "cpn0" ip saddr 10.77.0.0/24 ip daddr 0.0.0.0/0 accept');
    const exit = textsOf({ map: { ...map, routes: [lan, all] }, self: { ...self, routes: null } });
    expect(exit).toContain('forward: iifname "cpn0" ip saddr 10.77.0.0/24 ip daddr 0.0.0.0/0 accept');
  });

  it('leave out a route of another family than the network', () => {
    expect(textsOf({ map: { ...map, routes: [lan, annex, prefix('fd00::/64')] } })).toEqual(textsOf());
  });

  it('never name ranges that overlap side by side, which no nft set takes', () => {
    const isDisjoint = (prefixes: readonly Prefix[]) =>
      prefixes.every((one, at) => prefixes.slice(at + 1).every((two) => !overlaps(one, two)));
    fc.assert(
      fc.property(networksWithExit, fc.nat(), (any, at) => {
        const chosen = any.peers[at % any.peers.length] ?? self;
        const connector = { ...chosen, type: 'connector' as const };
        const rules = forwardingRules({ map: any, self: connector, options: { masquerade: true }, detours: any.peers });
        for (const rule of rules) {
          if ('from' in rule) expect(isDisjoint(rule.from) && rule.from.length > 0).toBe(true);
          if ('to' in rule) expect(isDisjoint(rule.to) && rule.to.length > 0).toBe(true);
        }
      }),
    );
  });
});
