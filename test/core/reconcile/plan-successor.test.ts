import { describe, expect, it } from 'vitest';
import { hostPrefix } from '../../../src/core/net/cidr.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import type { Step } from '../../../src/core/reconcile/step.ts';
import { address, bare, desireFor, dialled, keyPair, network, peer } from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const self = peer(1, { endpoint: dialled(1) });
const laptop = peer(3, { type: 'admin_device' });
const other = peer(4, { type: 'admin_device' });
const learned = { host: address('198.51.100.7'), port: 40_123 };

/** The host with the laptop found where it is, and another peer. */
function meet() {
  const desired = desireFor(self, network([self, laptop, other]));
  const actual = simulate(bare, plan(desired, bare, now));
  const { device } = actual;
  if (device === null) throw new Error('there is no interface');
  const peers = device.peers.map((each) =>
    each.publicKey === laptop.publicKey ? { ...each, endpoint: learned, latestHandshake: now } : each,
  );
  return { ...actual, device: { ...device, peers } };
}

const endpoints = (steps: readonly Step[]) =>
  steps.flatMap((step) => (step.do === 'configure-device' ? step.peers.map(({ endpoint }) => endpoint) : []));

describe('a peer whose key changed', () => {
  const renewed = { ...laptop, publicKey: keyPair(9).publicKey };

  it('is where the old key was heard from, and no other peer is touched', () => {
    const actual = meet();
    const desired = desireFor(self, network([self, renewed, other]));
    const steps = plan(desired, actual, now);
    expect(steps).toMatchObject([
      { do: 'configure-device', peers: [{ publicKey: renewed.publicKey, endpoint: learned }] },
      { do: 'remove-peers', publicKeys: [laptop.publicKey] },
    ]);
    expect(plan(desired, simulate(actual, steps), now)).toEqual([]);
  });

  it('is nowhere yet if the old key has no allowed IPs, or the endpoint is of a peer that stays', () => {
    const stripped = meet();
    const { device } = stripped;
    const peers = device?.peers.map((each) => ({ ...each, allowedIps: [] })) ?? [];
    const desired = desireFor(self, network([self, renewed, other]));
    expect(endpoints(plan(desired, { ...stripped, device: device && { ...device, peers } }, now))).not.toContain(
      learned,
    );
    const twin = {
      ...device?.peers[0],
      publicKey: other.publicKey,
      endpoint: learned,
      allowedIps: [hostPrefix(renewed.address)],
    };
    const held = { ...stripped, device: device && { ...device, peers: [twin] } } as ReturnType<typeof meet>;
    const added = plan(desired, held, now).flatMap((step) => (step.do === 'configure-device' ? step.peers : []));
    expect(added.find(({ publicKey }) => publicKey === renewed.publicKey)?.endpoint).toBeNull();
  });

  it('is at the endpoint of the map, if it has one', () => {
    const desired = desireFor(self, network([self, { ...renewed, endpoint: dialled(3) }, other]));
    expect(endpoints(plan(desired, meet(), now))).toEqual([dialled(3)]);
  });

  it('is nowhere yet if it has another address, or the old one stays', () => {
    const moved = { ...renewed, address: address('10.77.0.33') };
    expect(endpoints(plan(desireFor(self, network([self, moved, other])), meet(), now))).toEqual([null]);
    const second = { ...moved, id: 33 };
    expect(endpoints(plan(desireFor(self, network([self, laptop, second, other])), meet(), now))).toEqual([null]);
  });
});
