import { describe, expect, it } from 'vitest';
import type { ServiceSocket } from '../../../src/core/forward/access-filter.ts';
import { canChange, firewallMarks } from '../../../src/core/forward/own-table.ts';
import type { Firewall } from '../../../src/core/forward/packet-rule.ts';
import type { AccessRules, Rule } from '../../../src/core/map/access-rules.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { renderFirewall } from '../../../src/host/linux/nft/own-table.ts';
import { renderChange } from '../../../src/host/linux/nft/table-change.ts';
import { address, bare, desireFor, dialled, network, peer, prefix } from '../samples.ts';
import { simulate } from '../simulate.ts';

const lan = prefix('192.168.50.0/24');
const self = peer(1, { endpoint: dialled(1) });
const connector = peer(2, { type: 'connector', endpoint: dialled(2), routes: [lan] });
const peers = [self, connector, peer(3, { tags: ['ops'] }), peer(4)];
const ssh: Rule = {
  ...{ name: 'ssh', from: [{ kind: 'tag', tag: 'ops' }], to: [{ kind: 'any' }], protocol: 'tcp' },
  ports: [{ first: 22, last: 22 }],
};
const hasNft = { forwarding: { sysctls: {}, receipt: [], others: [], hasNft: true } };

function desire(rules: readonly Rule[] | null, services: readonly ServiceSocket[] = [], at = self) {
  const changes = rules === null ? {} : { rules: { rules, requiresEnforcement: false } };
  return desireFor(at, network(peers, { routes: [lan], ...changes }), { ...hasNft, services });
}
const firewallOf = (...given: Parameters<typeof desire>) => desire(...given).firewall as Firewall;
const textsOf = (firewall: Firewall, chain: string) =>
  firewall.rules.flatMap((rule) => (rule.chain === chain ? [rule.text] : []));

describe('the packet filter of a closed network', () => {
  it('is none in an open network', () => {
    expect(firewallOf(null).access).toBeUndefined();
    expect(firewallOf([]).access).toBeDefined();
  });

  it('judges what arrives and what leaves, on a connector also what passes through', () => {
    const [host, router] = [firewallOf([ssh]), firewallOf([ssh], [], connector)];
    const chains = ({ rules }: Firewall) => [...new Set(rules.map(({ chain }) => chain))];
    expect(chains(host)).toEqual(expect.arrayContaining(['admitting', 'sending']));
    expect(chains(router)).toEqual(expect.arrayContaining(['admitting', 'judging', 'sending']));
    expect(textsOf(router, 'judging')[0]).toBe('iifname "cpn0" oifname "cpn0" accept');
  });

  it('ends each chain with a refusal, and accepts no established connection first', () => {
    for (const chain of ['admitting', 'judging', 'sending']) {
      const texts = textsOf(firewallOf([ssh], [], connector), chain);
      const own = texts.filter((text) => !/^iifname !=/.test(text));
      expect(own.at(-1)).toMatch(/^[io]ifname "cpn0" .*counter name "denied_(in|out)" drop$/);
      expect(texts.join()).not.toMatch(/ct state \S*established/);
    }
  });

  it.each<[string, string, boolean]>([
    ['in the range', '10.77.0.4', true],
    ['behind a route', '192.168.50.9', true],
    ['outside', '203.0.113.99', false],
  ])('leaves the port of a control plane open that is %s', (_, at, isOpen) => {
    const texts = textsOf(firewallOf([], [{ address: address(at), port: 8787 }]), 'sending');
    const accepts = `oifname "cpn0" meta l4proto tcp ct original ip daddr ${at} ct original proto-dst 8787 accept`;
    expect(texts.includes(accepts)).toBe(isOpen);
  });

  describe('of a connector that a phone dials', () => {
    const phone = peer(5, { via: { connector: 2 } });
    const toPhone: Rule = { ...ssh, to: [{ kind: 'peer', id: 5 }] };
    const at = (connectors: Peer, changes: Partial<AccessRules> = {}) => {
      const rules = { rules: [toPhone], requiresEnforcement: false, ...changes };
      const map = network([self, connectors, ...peers.slice(2), phone], { routes: [lan], rules });
      return desireFor(connectors, map, hasNft).firewall as Firewall;
    };
    const elementsOf = ({ access }: Firewall, name: RegExp) =>
      access?.sets.find((set) => name.test(set.name))?.elements;

    const ofDevice = /^device\w+_peers$/;

    it('judges what it relays to the phone, before it relays anything', () => {
      const firewall = at(connector);
      expect(textsOf(firewall, 'judging').slice(0, 2)).toEqual([
        expect.stringMatching(/^iifname "cpn0" oifname "cpn0" ct original ip daddr vmap @device_ends_\w+$/),
        'iifname "cpn0" oifname "cpn0" accept',
      ]);
      const [, chain] = /^10\.77\.0\.5 : goto (device\w+)$/.exec(`${elementsOf(firewall, /^device_ends/)}`) ?? [];
      expect(elementsOf(firewall, ofDevice)).toEqual([expect.stringMatching(/^10\.77\.0\.3 : jump in_\w+$/)]);
      expect(firewall.access?.chains.find(({ name }) => name === chain)?.texts.at(-1)).toBe(
        'counter name "denied_in" drop',
      );
    });

    it('lets nothing reach it where enforcement is required, unless each connector enforces', () => {
      const required = { requiresEnforcement: true };
      expect(elementsOf(at(connector, required), ofDevice)).toBeUndefined();
      expect(elementsOf(at({ ...connector, enforcesRules: true }, required), ofDevice)).toHaveLength(1);
    });
  });

  it('has one element for each peer, however many ports it is allowed', () => {
    const ports = Array.from({ length: 20 }, (_, index) => ({ first: 1000 + 20 * index, last: 1010 + 20 * index }));
    const crowd = Array.from({ length: 9 }, (_, index) =>
      peer(10, { id: 10 + index, address: address(`10.77.0.${10 + index}`), tags: ['ops'] }),
    );
    const map = network([...peers, ...crowd], { rules: { rules: [{ ...ssh, ports }], requiresEnforcement: false } });
    const { access } = desireFor(self, map, hasNft).firewall as Firewall;
    const sizes = access?.sets.map(({ name, elements }) => [name, elements.length]);
    expect(sizes).toEqual(
      expect.arrayContaining([
        [expect.stringMatching(/^in[0-9a-f]+_peers$/), 10],
        [expect.stringMatching(/^in[0-9a-f]+_ongoing_peers$/), 10],
      ]),
    );
    expect(access?.classes.map(({ texts }) => texts.length)).toEqual([1, 2]);
  });

  it('has the same marks for the same rules, and others for other elements', () => {
    expect(firewallMarks(firewallOf([ssh]))).toEqual(firewallMarks(firewallOf([ssh])));
    const other = firewallOf([{ ...ssh, ports: [{ first: 23, last: 23 }] }]);
    expect(firewallMarks(other)).not.toEqual(firewallMarks(firewallOf([ssh])));
  });
});

describe('a change of the rules', () => {
  const before = desire([ssh]);
  const after = desire([{ ...ssh, from: [...ssh.from, { kind: 'peer', id: 4 }] }]);
  const loaded = simulate(bare, plan(before, bare, 0));

  it('changes the table in place if the rules of the last plan are loaded', () => {
    const [step, ...more] = plan(after, loaded, 0, new Set(), before.firewall);
    expect(step).toMatchObject({ do: 'set-firewall', firewall: after.firewall, loaded: before.firewall });
    expect(more).toEqual([]);
    const map = /in[0-9a-f]+_peers/.exec(renderFirewall(before.firewall as Firewall))?.[0];
    const transactions = change(before.firewall as Firewall, after.firewall as Firewall);
    expect(transactions.map((text) => text.split('\n'))).toEqual([
      [
        expect.stringMatching(`^add element inet cpn_cpn0 ${map} { 10\\.77\\.0\\.4 : jump in_\\w+ }$`),
        expect.stringMatching(/^add element inet cpn_cpn0 in\w+_ongoing_peers { 10\.77\.0\.4 : jump in_ongoing_\w+ }$/),
        'flush chain inet cpn_cpn0 identity',
        expect.stringMatching(/^add rule inet cpn_cpn0 identity return comment "cpn elements [0-9a-f]{16}"$/),
        '',
      ],
    ]);
    const [back] = change(after.firewall as Firewall, before.firewall as Firewall);
    expect(back).toContain(`delete element inet cpn_cpn0 ${map} { 10.77.0.4 }\n`);
  });

  it('adds a class for other ports before peers move to it, and deletes the class that they leave', () => {
    const [one, other] = [firewallOf([ssh]), firewallOf([{ ...ssh, ports: [{ first: 8000, last: 8080 }] }])];
    const [created, moved, removed, ...more] = change(one, other);
    expect(created).toContain('proto-dst { 8000-8080 } accept');
    expect(created).not.toContain('element');
    expect(moved?.indexOf('delete element ')).toBeLessThan(moved?.indexOf('add element ') ?? 0);
    expect(moved).not.toContain('delete chain');
    expect(removed).toMatch(/^flush chain inet cpn_cpn0 in_\w+\n/);
    expect(removed).toContain('delete chain');
    expect(more).toEqual([]);
  });

  it('adds elements before it deletes others, so that an address always has one', () => {
    const other = firewallOf([{ ...ssh, from: [{ kind: 'peer', id: 4 }] }]);
    const [added, deleted, ...more] = change(firewallOf([ssh]), other);
    expect(added).toMatch(/^add element .+_peers { 10\.77\.0\.4 : jump/);
    expect(added).not.toContain('delete');
    expect(deleted).toMatch(/^delete element .+_peers { 10\.77\.0\.3 }/);
    expect(deleted).not.toContain('add element');
    expect(more).toEqual([]);
  });

  it('never changes ranges, or what all are allowed, in a map that packets search', () => {
    const router = firewallOf([ssh], [], connector);
    const split = firewallOf([{ ...ssh, to: [{ kind: 'cidr', prefix: prefix('192.168.50.8/29') }] }], [], connector);
    const open = firewallOf([{ ...ssh, from: [{ kind: 'any' }] }], [], connector);
    for (const wanted of [split, open]) {
      const [created, moved, removed, ...more] = change(router, wanted);
      expect(created).toMatch(
        /^table inet cpn_cpn0 {\n[\s\S]+ map in_ends_\w+ { type ipv4_addr : verdict; flags interval;/,
      );
      expect(moved).toMatch(/^flush chain inet cpn_cpn0 judging\n(add rule inet cpn_cpn0 judging .+\n)+/m);
      expect(moved).not.toMatch(/ element .+(_ranges|_all|_ends)/);
      expect(removed).toMatch(/^delete map inet cpn_cpn0 in_ends_\w+$/m);
      expect(more).toEqual([]);
    }
  });

  it('loads the whole table if no table of the same network is in place', () => {
    const steps = [
      plan(after, loaded, 0),
      plan(after, loaded, 0, new Set(), firewallOf([])),
      plan(after, { ...loaded, firewall: ['forward (policy drop)'] }, 0, new Set(), before.firewall),
      plan(desire(null), loaded, 0, new Set(), before.firewall),
    ];
    for (const [step] of steps) {
      expect(step).toMatchObject({ do: 'set-firewall' });
      expect(step).not.toHaveProperty('loaded');
    }
  });

  it('matches the tunnel as a member of its VRF where the kernel shows the VRF', () => {
    const forwarding = { ...hasNft.forwarding, sysctls: { 'net.ipv4.ip_forward': '1' }, vrf: 'red' };
    const map = network(peers, { routes: [lan], rules: { rules: [ssh], requiresEnforcement: false } });
    const { firewall } = desireFor(connector, map, { forwarding });
    const inVrf = firewall as Firewall;
    for (const chain of ['probed', 'admitting', 'judging', 'forward']) {
      const texts = textsOf(inVrf, chain).join('\n');
      expect(texts).toContain('meta sdifname "cpn0"');
      expect(texts).not.toContain('iifname "cpn0"');
    }
    expect(textsOf(inVrf, 'arriving').join('\n')).toContain('iifname "cpn0" ');
    const { chains = [], classes = [] } = inVrf.access ?? {};
    expect([...chains, ...classes].flatMap(({ texts }) => texts).join('\n')).not.toContain('iifname');
  });
});

function change(loaded: Firewall, wanted: Firewall): readonly string[] {
  expect(canChange(loaded, wanted)).toBe(true);
  return renderChange(wanted, loaded);
}
