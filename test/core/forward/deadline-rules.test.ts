import { describe, expect, it } from 'vitest';
import { ageRules, expiryRules, timeoutsOf, writeSets } from '../../../src/core/forward/deadline-rules.ts';
import { noForwarding } from '../../../src/core/forward/ingress.ts';
import { firewallMarks } from '../../../src/core/forward/own-table.ts';
import { bare, desireFor, dialled, network, options, peer, prefix } from '../samples.ts';

const self = peer(1, { type: 'connector', endpoint: dialled(1), expiresAt: 9_000 });
const map = (expiresAt?: number) => network([self, peer(2, expiresAt === undefined ? {} : { expiresAt }), peer(3)]);
const rulesOf = (expiresAt?: number) => expiryRules('cpn0', map(expiresAt), self, []);
const marks = (rules: ReturnType<typeof rulesOf>) => firewallMarks({ link: 'cpn0', rules });

describe('the rules for peers that expire', () => {
  it('are none where no other peer does', () => expect(rulesOf()).toEqual([]));

  it('refuse both directions of what is not in the set of peers that have not expired', () => {
    const texts = rulesOf(5_000).map(({ chain, text }) => `${chain}: ${text}`);
    expect(texts).toEqual([
      'arriving: iifname "cpn0" ip saddr @expiring ip saddr != @unexpired drop',
      'forward: oifname "cpn0" ip daddr @expiring ip daddr != @unexpired drop',
    ]);
  });

  it('are rules of both families for all that its tunnel has for the peer, without routes that are not accepted', () => {
    const host = peer(3, { endpoint: dialled(3) });
    const edge = peer(2, { type: 'connector', endpoint: dialled(2), expiresAt: 5_000 });
    const sees = network([host, edge], { routes: [prefix('192.168.50.0/24'), prefix('fd50::/64')] });
    const forwarding = { ...noForwarding, hasNft: true };
    const setsFor = (acceptRoutes: boolean) => {
      const { firewall } = desireFor(host, sees, { forwarding, options: { ...options, acceptRoutes } });
      return writeSets('cpn0', firewall?.rules ?? [], null);
    };
    expect(setsFor(true)).toEqual([
      '  set expiring { type ipv4_addr; flags interval; elements = { 10.77.0.2, 192.168.50.0-192.168.50.255 } }\n',
      '  set unexpired { type ipv4_addr; flags interval, timeout; }\n',
      '  set expiring6 { type ipv6_addr; flags interval; elements = { fd50::-fd50::ffff:ffff:ffff:ffff } }\n',
      '  set unexpired6 { type ipv6_addr; flags interval, timeout; }\n',
    ]);
    expect(setsFor(false)[0]).toContain('elements = { 10.77.0.2 }');
  });

  it('are other rules with other deadlines, and the same at another time', () => {
    expect(marks(rulesOf(5_000))).toEqual(marks(rulesOf(5_000)));
    expect(marks(rulesOf(5_000))).not.toEqual(marks(rulesOf(6_000)));
  });

  it('keep a peer open until it expires, and close without a time', () => {
    const elements = (now: number | null) => writeSets('cpn0', rulesOf(5_000), now)[1];
    expect(elements(0)).toBe(
      '  set unexpired { type ipv4_addr; flags interval, timeout; elements = { 10.77.0.2 timeout 5s } }\n',
    );
    expect(elements(4_100)).toContain('timeout 1s');
    for (const now of [5_000, 9_000, null]) {
      expect(elements(now)).toBe('  set unexpired { type ipv4_addr; flags interval, timeout; }\n');
    }
    expect(writeSets('cpn0', rulesOf(5_000), null)[0]).toContain(
      'set expiring { type ipv4_addr; flags interval; elements = { 10.77.0.2 } }',
    );
  });

  it.each([
    [1, '1s'],
    [86_400_000, '1d'],
    [172_800_000, '2d'],
    [90_061_000, '1d3661s'],
    [32_503_680_000_000, '3650d'],
  ])('write the timeout of %d ms as nft reads it', (at, text) => {
    expect(writeSets('cpn0', rulesOf(at), 0)[1]).toContain(`10.77.0.2 timeout ${text} }`);
  });

  it.each([
    [-1, 0],
    [0, 0],
    [90_061_000, 90_061],
    [32_503_680_000_000, 3650 * 86_400],
  ])('have the timeout that is left of it, within the limits of the kernel: %d ms', (at, seconds) => {
    expect([...timeoutsOf('cpn0', rulesOf(at), 0)]).toEqual([['unexpired 10.77.0.2', seconds]]);
    expect([...timeoutsOf('cpn0', ageRules('cpn0', at, self.address), 0)]).toEqual([['valid cpn0', seconds]]);
  });

  it('stand in front of all that let packets through', () => {
    const rules = desireFor(self, map(5_000), { mapEnd: 9_000 }).firewall?.rules.map(({ name }) => name) ?? [];
    const first = rules.findIndex((rule) => rule.startsWith('accept'));
    const before = rules.slice(0, first);
    expect(before.filter((rule) => rule === 'refuse-expired')).toHaveLength(2);
    expect(before.filter((rule) => rule === 'refuse-outdated')).toHaveLength(2);
  });

  it('stay where the peer has expired, and its own tunnel goes', () => {
    const sees = { ...map(5_000), peers: map(5_000).peers.map((each) => ({ ...each, endpoint: dialled(9) })) };
    const [one, other] = [desireFor(self, sees), desireFor(self, sees, { expired: [2] })];
    expect(other.firewall).toEqual(one.firewall);
    const keys = (desired: typeof one) => desired.config.peers.map(({ publicKey }) => publicKey);
    expect(keys(one)).toContain(peer(2).publicKey);
    expect(keys(other)).toEqual([peer(3).publicKey]);
  });
});

describe('the rules for a map that is valid until an instant', () => {
  it('are none where it is valid for good', () => expect(ageRules('cpn0', null, self.address)).toEqual([]));

  it('refuse both directions once the tunnel is not in the set of valid ones', () => {
    const rules = ageRules('cpn0', 5_000, self.address);
    expect(rules.map(({ text }) => text)).toEqual([
      'iifname "cpn0" iifname != @valid drop',
      'oifname "cpn0" oifname != @valid drop',
      // The answer that its peers take as: use another connector.
      'iifname "cpn0" iifname != @valid ip daddr 10.77.0.1 tcp dport 9 reject with icmp type prot-unreachable',
    ]);
    expect(writeSets('cpn0', rules, 0)).toEqual([
      '  set valid { type ifname; flags timeout; elements = { "cpn0" timeout 5s } }\n',
    ]);
    expect(writeSets('cpn0', rules, 5_000)).toEqual(['  set valid { type ifname; flags timeout; }\n']);
    expect(firewallMarks({ link: 'cpn0', rules })).not.toEqual(
      firewallMarks({ link: 'cpn0', rules: ageRules('cpn0', 6_000, self.address) }),
    );
  });

  it('are those of a connector alone', () => {
    const names = (type: 'connector' | 'origin') =>
      desireFor({ ...self, type }, map(), { mapEnd: 5_000 }).firewall?.rules.map(({ name }) => name) ?? [];
    expect(names('connector').filter((rule) => rule === 'refuse-outdated')).toHaveLength(2);
    expect(names('connector')).toContain('refuse-probes');
    expect(names('origin')).not.toContain('refuse-outdated');
    expect(bare.firewall).toBeNull();
  });
});
