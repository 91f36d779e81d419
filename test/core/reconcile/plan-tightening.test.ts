import { describe, expect, it } from 'vitest';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { planRestoration } from '../../../src/core/reconcile/plan-tightening.ts';
import { address, bare, desireFor, dialled, keyPair, network, peer, prefix } from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const route = prefix('192.168.50.0/24');
const first = peer(1, { type: 'connector', endpoint: dialled(1) });
const second = peer(2, { type: 'connector', endpoint: dialled(2) });
const server = peer(3, { endpoint: dialled(3) });
const laptop = peer(4, { type: 'admin_device' });
const before = desireFor(laptop, network([first, second, server, laptop], { routes: [route] }));
const { device } = simulate(bare, plan(before, bare, now));
/** The host as before, of which nothing can be read but WireGuard's own table. */
const unread: Actual = { ...bare, device, unread: 'ip did not finish' };
const ipsOf = ({ device: seen }: Actual) =>
  new Map(seen?.peers.map(({ publicKey, allowedIps }) => [publicKey, [...allowedIps].sort()]));

describe('the plan of a host that cannot be observed', () => {
  it('is empty where the peers are as the network has them', () => {
    expect(plan(before, unread, now)).toEqual([]);
  });

  it('removes a peer that the network lists no more, and changes nothing else', () => {
    const desired = desireFor(laptop, network([first, second, laptop], { routes: [route] }));
    const steps = plan(desired, unread, now);
    expect(steps).toMatchObject([{ do: 'remove-peers', publicKeys: [server.publicKey] }]);
    expect(plan(desired, simulate(unread, steps), now)).toEqual([]);
  });

  it('takes a route from its connector where no peer serves it any more', () => {
    const desired = desireFor(laptop, network([first, second, server, laptop], { routes: [] }));
    const after = simulate(unread, plan(desired, unread, now));
    expect(ipsOf(unread).get(first.publicKey)).toContain(route);
    expect([...ipsOf(after).values()].flat()).not.toContain(route);
  });

  it('moves a route to the connector that serves it now', () => {
    const withdrawn = { ...first, withdrawn: [route] };
    const desired = desireFor(laptop, network([withdrawn, second, server, laptop], { routes: [route] }));
    const after = simulate(unread, plan(desired, unread, now));
    expect(ipsOf(after).get(first.publicKey)).not.toContain(route);
    expect(ipsOf(after).get(second.publicKey)).toContain(route);
  });

  it('keeps a peer that has a new key, and adds neither another peer nor another prefix', () => {
    const renewed = { ...server, publicKey: keyPair(9).publicKey };
    const other = prefix('192.168.60.0/24');
    const peers = [first, second, renewed, peer(5, { endpoint: dialled(5) }), laptop];
    const desired = desireFor(laptop, network(peers, { routes: [route, other] }));
    const after = simulate(unread, plan(desired, unread, now));
    expect(ipsOf(after).get(renewed.publicKey)).toEqual(ipsOf(unread).get(server.publicKey));
    expect([...ipsOf(after).values()].flat().sort()).toEqual([...ipsOf(unread).values()].flat().sort());
  });

  it('adds no peer that would have none of the present prefixes', () => {
    const far = peer(6, { address: address('10.77.0.6'), endpoint: dialled(6) });
    const desired = desireFor(laptop, network([first, second, server, far, laptop], { routes: [route] }));
    expect(plan(desired, unread, now)).toEqual([]);
  });

  it('changes neither key, port nor mark', () => {
    const wanted = { ...before.config, listenPort: 51820, fwmark: 8349 };
    const other = { ...device, publicKey: keyPair(9).publicKey } as Actual['device'];
    for (const seen of [device, other])
      expect(plan({ ...before, config: wanted }, { ...unread, device: seen }, now)).toEqual([]);
  });

  it('is taken back without the peers that it added', () => {
    const renewed = { ...server, publicKey: keyPair(9).publicKey };
    const desired = desireFor(laptop, network([first, second, renewed, laptop], { routes: [route] }));
    const after = simulate(unread, plan(desired, unread, now));
    expect([...ipsOf(after).keys()]).toContain(renewed.publicKey);
    if (device === null) throw new Error('there is no device');
    const steps = planRestoration(desired, device, after, { now, moved: new Set() });
    expect(ipsOf(simulate(after, steps))).toEqual(ipsOf(unread));
  });

  it('is taken back by the peers that were there before', () => {
    const desired = desireFor(laptop, network([second, laptop], { routes: [] }));
    const after = simulate(unread, plan(desired, unread, now));
    expect(ipsOf(after)).not.toEqual(ipsOf(unread));
    if (device === null) throw new Error('there is no device');
    const steps = planRestoration(desired, device, after, { now, moved: new Set() });
    expect(ipsOf(simulate(after, steps))).toEqual(ipsOf(unread));
  });
});
