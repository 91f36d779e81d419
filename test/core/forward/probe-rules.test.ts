import { describe, expect, it } from 'vitest';
import type { Firewall } from '../../../src/core/forward/packet-rule.ts';
import { disabledIpv6Key, ipv6Key } from '../../../src/core/host-state/sysctl-keys.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { probeAddressOf } from '../../../src/core/paths/probe-address.ts';
import { desireFor, dialled, network, peer, prefix, usualConstraints } from '../samples.ts';

const everything = prefix('0.0.0.0/0');
const relay = peer(1, { type: 'connector', endpoint: dialled(1) });
const laptop = peer(3);
const office = network([relay, laptop, peer(4)], { relay: 1 });
const own = probeAddressOf(7, 3);

function firewallOf(changes: Partial<NetworkMap> = {}, self = laptop, hasPaths = true): Firewall {
  const sysctls = { [disabledIpv6Key('default')]: '0', [ipv6Key]: '0' };
  const forwarding = { sysctls, receipt: [], others: [], hasNft: true };
  const map = { ...office, peers: office.peers.map((each) => (each.id === self.id ? self : each)), ...changes };
  const constraints = { ...usualConstraints, allowed: [everything] };
  return desireFor(self, map, { forwarding, ...(hasPaths && { paths: [] }) }, constraints).firewall as Firewall;
}

const textsOf = ({ rules }: Firewall, chain: string) =>
  rules.flatMap((rule) => (rule.chain === chain ? [rule.text] : []));

const echoes = `iifname "cpn0" ip6 saddr fe80::/64 ip6 daddr ${own} icmpv6 type { echo-request, echo-reply } accept`;
const fragments = `iifname "cpn0" ip6 saddr fe80::/64 ip6 daddr ${own} frag frag-off != 0 accept`;
const closed = { rules: { rules: [], requiresEnforcement: false } };

it.each([{}, closed])(
  'the rules for direct paths have one name, by which a change of them is shown, with %j',
  (changes) => {
    const others = firewallOf(changes, laptop, false).rules.map(({ name }) => name);
    const names = firewallOf(changes).rules.map(({ name }) => name);
    expect(names.filter((name) => name !== 'direct-paths')).toEqual(others);
    expect(new Set(names)).toContain('direct-paths');
  },
);

describe('the rules for probe addresses', () => {
  it.each<[string, Firewall]>([
    ['an open network', firewallOf()],
    ['a closed network', firewallOf(closed)],
    ['a full tunnel', firewallOf({ routes: [everything] })],
    ['a connector without an endpoint', firewallOf({}, peer(3, { type: 'connector' }))],
  ])('admit echoes alone from the link-local addresses of the tunnel, before all other rules, in %s', (_, firewall) => {
    expect(textsOf(firewall, 'arriving').slice(0, 3)).toEqual([
      echoes,
      fragments,
      'iifname "cpn0" ip6 saddr fe80::/10 drop',
    ]);
  });

  it('precede the filter of a closed network, which has no rule for these addresses', () => {
    const firewall = firewallOf(closed);
    expect(textsOf(firewall, 'admitting').slice(0, 2)).toEqual([echoes, fragments]);
    expect(textsOf(firewall, 'sending')[0]).toBe(
      `oifname "cpn0" ip6 saddr ${own} ip6 daddr fe80::/64 icmpv6 type { echo-request, echo-reply } accept`,
    );
    expect([textsOf(firewallOf(), 'admitting'), textsOf(firewallOf(), 'sending')]).toEqual([[], []]);
  });
});
