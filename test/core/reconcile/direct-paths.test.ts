import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Actual, ActualPeer } from '../../../src/core/host-state/actual.ts';
import { disabledIpv6Key } from '../../../src/core/host-state/sysctl-keys.ts';
import type { Peer, PeerId } from '../../../src/core/map/model.ts';
import { parseEndpoint, type SocketEndpoint } from '../../../src/core/net/endpoint.ts';
import { findDevicePaths } from '../../../src/core/paths/device-paths.ts';
import { probeAddressOf, probePrefixOf } from '../../../src/core/paths/probe-address.ts';
import type { DesiredInputs } from '../../../src/core/reconcile/desired.ts';
import { findMeshLoss } from '../../../src/core/reconcile/mesh-loss.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { recordSteps } from '../../../src/core/reconcile/record-receipt.ts';
import type { Step } from '../../../src/core/reconcile/step.ts';
import { mayHavePath } from '../../../src/core/routing/topology/via-connectors.ts';
import { bare, desireFor, dialled, network, networksWithExit, options, peer, prefix } from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const relay = peer(1, { type: 'connector', endpoint: dialled(1) });
const [laptop, phone, tablet] = [peer(3), peer(4), peer(5)];
const office = network([relay, laptop, phone, tablet], { relay: 1 });
const desire = (paths: readonly PeerId[], changes: Partial<DesiredInputs> = {}, map = office) =>
  desireFor(laptop, map, { paths, ...changes });
const settled = (paths: readonly PeerId[]) => simulate(bare, plan(desire(paths), bare, now));
const kinds = (steps: readonly Step[]) => steps.map((step) => step.do);
const learned = parseEndpoint('198.51.100.9:40000') as SocketEndpoint;

/** The peer in WireGuard's table, as an attempt adds it and WireGuard changes it. */
const withTrial = (actual: Actual, of: Peer, changes: Partial<ActualPeer> = {}): Actual => {
  const trial: ActualPeer = {
    ...{ publicKey: of.publicKey, presharedKey: null, endpoint: learned, allowedIps: [probePrefixOf(7, of.id)] },
    ...{ keepalive: 1, latestHandshake: now - 2, rxBytes: 180, txBytes: 244, ...changes },
  };
  return { ...actual, device: actual.device && { ...actual.device, peers: [...actual.device.peers, trial] } };
};

describe('a switch', () => {
  it('is one change of WireGuard’s table, which leaves the learned endpoint and the session alone', () => {
    const steps = plan(desire([4]), withTrial(settled([]), phone), now);
    expect(kinds(steps)).toEqual(['configure-device']);
    expect(steps[0]).toMatchObject({ peers: [{ publicKey: phone.publicKey, endpoint: null, keepalive: 25 }] });
  });

  it('moves the address in the same change where the relay has single addresses', () => {
    const single = { ...office, cidr: prefix('10.77.0.3/32') };
    const [before, after] = [[], [4]].map((paths) => desireFor(laptop, single, { paths }));
    if (before === undefined || after === undefined) throw new Error('no desired state');
    const actual = withTrial(simulate(bare, plan(before, bare, now)), phone);
    const steps = plan(after, actual, now);
    expect(kinds(steps)).toEqual(['configure-device']);
    // The gaining peer comes first, so that the address has a peer at any time.
    expect(steps[0]).toMatchObject({ peers: [{ publicKey: phone.publicKey }, { publicKey: relay.publicKey }] });
    expect(kinds(plan(before, simulate(actual, steps), now))).toEqual(['configure-device', 'remove-peers']);
  });

  it('back removes the peer, and states the relay as the reason', () => {
    const steps = plan(desire([]), settled([4]), now);
    expect(kinds(steps)).toEqual(['remove-peers']);
    expect(steps[0]?.changes).toMatchObject([{ target: phone.publicKey, reason: 'reached through the relay' }]);
  });

  it('is no loss of the network, in either direction', () => {
    const listing = { known: office.peers, newest: office.peers, isBelieved: false };
    const [direct, relayed] = [desire([4, 5]), desire([])];
    expect(findMeshLoss(direct.savedConfig, relayed.config, listing)).toBeNull();
    expect(findMeshLoss(relayed.savedConfig, direct.config, listing)).toBeNull();
  });
});

describe('a path in use', () => {
  it('needs no step, however often its endpoint changes and however old its handshake is', () => {
    const actual = simulate(settled([]), plan(desire([4]), withTrial(settled([]), phone), now));
    for (const latestHandshake of [null, now - 5, now - 10_000]) {
      for (const endpoint of [null, learned]) {
        const peers = actual.device?.peers.map((each) =>
          each.publicKey === phone.publicKey ? { ...each, endpoint, latestHandshake } : each,
        );
        const found = { ...actual, device: actual.device && { ...actual.device, peers: peers ?? [] } };
        expect(plan(desire([4]), withTrial(found, tablet), now).length).toBe(0);
      }
    }
  });

  it('is not in the wg-quick file', () => {
    expect(desire([4]).savedConfig).toEqual(desire([]).config);
    expect(desire([4]).config.peers).toHaveLength(2);
  });

  it('adds no route, also for its probe address', () => {
    expect(desire([4, 5]).routes).toEqual(desire([]).routes);
  });

  it('changes no packet rule, also of a peer that expires', () => {
    const expiring = { ...office, peers: [relay, laptop, { ...phone, expiresAt: now * 1_000 }, tablet] };
    const forwarding = { sysctls: {}, receipt: [], others: [], hasNft: true };
    const of = (paths: readonly PeerId[]) => desire(paths, { forwarding }, expiring).firewall;
    expect(of([4])).toEqual(of([]));
  });

  it('carries nothing in a closed network without packet rules', () => {
    const closed = { ...office, rules: { rules: [], requiresEnforcement: false } };
    const desired = desire([4], {}, closed);
    expect(desired.config.peers.flatMap(({ allowedIps }) => allowedIps)).toEqual([]);
    expect(desired.triable.size).toBe(0);
  });
});

describe('a peer under trial', () => {
  it('is left alone, and removed once its attempt is long over', () => {
    expect(plan(desire([]), withTrial(settled([]), phone), now)).toEqual([]);
    expect(kinds(plan(desire([]), withTrial(settled([]), phone), now + 3_600))).toEqual(['remove-peers']);
    const stranger = withTrial(settled([]), peer(9));
    const reasons = plan(desire([]), stranger, now).map(({ changes }) => changes.map(({ reason }) => reason));
    expect(reasons).toEqual([['not a peer of the network']]);
  });
});

/** What a host should be, with any of the paths that it could have. */
const desires = fc
  .tuple(networksWithExit, fc.nat(), fc.boolean(), fc.uniqueArray(fc.integer({ min: 1, max: 12 })))
  .map(([given, at, acceptRoutes, paths]) => {
    const map = { ...given, relay: given.relay ?? 1 };
    const self = map.peers[at % map.peers.length] as Peer;
    return { map, self, paths, desired: desireFor(self, map, { options: { ...options, acceptRoutes }, paths }) };
  });

describe('a plan with paths', () => {
  it('gives what is desired, from which the same paths follow, and a second one is empty', () => {
    fc.assert(
      fc.property(desires, ({ map, self, paths, desired }) => {
        const actual = simulate(bare, plan(desired, bare, now));
        expect(plan(desired, actual, now)).toEqual([]);
        const used = map.peers.filter((each) => paths.some((id) => id === each.id) && mayHavePath(each, self, map));
        const peers = actual.device?.peers.map((each) => ({ ...each, latestHandshake: now })) ?? [];
        const device = actual.device && { ...actual.device, peers };
        expect(findDevicePaths(device, map, self, now)).toEqual(used.map(({ id }) => id));
      }),
      { numRuns: 50 },
    );
  });
});

describe('the probe address', () => {
  const own = { address: probeAddressOf(7, 3), length: 64 };
  const has = (sysctls: Readonly<Record<string, string>>, changes: Partial<DesiredInputs> = {}, map = office) =>
    desire([], { forwarding: { sysctls, receipt: [], others: [], hasNft: true }, ...changes }, map);
  const enabled = { [disabledIpv6Key('default')]: '0' };

  it('is added to the interface once it is up, and stays there', () => {
    const desired = has(enabled);
    expect(desired.probeAddress).toEqual(own);
    const steps = plan(desired, bare, now);
    const commands = steps.flatMap((step) => (step.do === 'configure-link' ? step.commands : []));
    const [up, added] = [
      commands.findIndex((each) => 'set' in each && each.set === 'up'),
      commands.findIndex((each) => 'address' in each && each.address.address === own.address),
    ];
    expect(up).toBeLessThan(added);
    const actual = simulate(bare, steps);
    expect(plan(desired, actual, now)).toEqual([]);
    const link = actual.link && { ...actual.link, addresses: [desired.config.address] };
    expect(plan(desired, { ...actual, link }, now).flatMap(({ changes }) => changes)).toMatchObject([
      { action: 'add', kind: 'address', target: `${own.address}/64` },
    ]);
    // It goes with the interface, which the receipt has.
    expect(recordSteps([], steps, bare).map(({ made }) => made)).toEqual(['interface', 'firewall']);
  });

  it.each<[string, ReturnType<typeof has>]>([
    ['without IPv6', has({})],
    ['with IPv6 turned off', has({ [disabledIpv6Key('default')]: '1' })],
    ['with IPv6 turned off on the interface', has({ ...enabled, [disabledIpv6Key('cpn0')]: '1' })],
    ['with an MTU too small for IPv6', has(enabled, { options: { ...options, mtu: 1_279 } })],
    ['without a named relay', has(enabled, {}, { ...office, relay: undefined } as never)],
    ['of another service', has(enabled, {}, { ...office, id: null })],
    ['that no peer could reach', has(enabled, {}, network([relay, laptop], { relay: 1 }))],
  ])('is none on a host %s', (_, desired) => {
    expect(desired.probeAddress).toBeNull();
    expect(desired.firewall?.rules.filter(({ text }) => text.includes('echo-request'))).toEqual([]);
  });

  it('is none on a host with an endpoint', () => {
    const self = { ...laptop, endpoint: dialled(3) };
    const map = network([relay, self, phone], { relay: 1 });
    const forwarding = { sysctls: enabled, receipt: [], others: [], hasNft: true };
    expect(desireFor(self, map, { forwarding }).probeAddress).toBeNull();
  });
});
