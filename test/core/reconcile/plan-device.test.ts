import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import type { Actual, Device } from '../../../src/core/host-state/actual.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import type { Step } from '../../../src/core/reconcile/step.ts';
import { bare, desireFor, dialled, keyPair, network, options, peer, prefix } from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const route = prefix('192.168.50.0/24');
const first = peer(1, { type: 'connector', endpoint: dialled(1) });
const second = peer(2, { type: 'connector', endpoint: dialled(2) });
const laptop = peer(3, { type: 'admin_device' });
const office = network([first, second, laptop]);
const desired = desireFor(laptop, office);
const settled = simulate(bare, plan(desired, bare, now));
const with_ = (changes: Partial<Device>): Actual => ({
  ...settled,
  device: settled.device && { ...settled.device, ...changes },
});
const setKeys = ([step]: readonly Step[]) =>
  step?.do === 'configure-device' ? step.peers.map(({ publicKey }) => publicKey) : [];

describe('what a plan sets of a device', () => {
  it('is the key alone where that differs, and the change names it', () => {
    const other = keyPair(9).publicKey;
    const steps = plan(desired, with_({ publicKey: other }), now);
    expect(steps).toMatchObject([{ do: 'configure-device', privateKey: desired.keyPair.privateKey, peers: [] }]);
    expect(steps[0]).not.toHaveProperty('listenPort');
    expect(steps[0]).not.toHaveProperty('fwmark');
    expect(steps[0]?.changes).toEqual([
      {
        ...{ action: 'update', kind: 'interface', target: 'cpn0', reason: 'the public key differs' },
        ...{ before: { 'public key': other }, after: { 'public key': laptop.publicKey } },
      },
    ]);
  });

  it('is the listen port alone where one is wanted and differs', () => {
    const fixed = desireFor(laptop, office, { options: { ...options, listenPort: 51820 } });
    const steps = plan(fixed, settled, now);
    expect(steps).toMatchObject([{ do: 'configure-device', listenPort: 51820, peers: [] }]);
    expect(steps[0]).not.toHaveProperty('privateKey');
    expect(steps[0]?.changes).toMatchObject([{ before: { 'listen port': 40000 }, after: { 'listen port': 51820 } }]);
    expect(plan(fixed, simulate(settled, steps), now)).toEqual([]);
    expect(plan(desired, with_({ listenPort: 51999 }), now)).toEqual([]);
  });

  it('is no mark where none is wanted and one is there', () => {
    const steps = plan(desired, with_({ fwmark: 51820 }), now);
    expect(steps).toMatchObject([{ do: 'configure-device', fwmark: null, peers: [] }]);
    expect(steps[0]?.changes).toMatchObject([{ before: { mark: 51820 }, after: { mark: null } }]);
  });

  it('names of a peer what was and what will be, and no preshared key', () => {
    const change = (actual: Actual) => plan(desired, actual, now)[0]?.changes;
    const [one, ...others] = settled.device?.peers ?? [];
    if (one === undefined) throw new Error('there is no peer');
    const spoiled = { ...one, endpoint: null, presharedKey: new Secret(Buffer.alloc(32, 7).toString('base64')) };
    expect(change(with_({ peers: [spoiled, ...others] }))).toEqual([
      {
        ...{ action: 'update', kind: 'peer', target: one.publicKey, reason: 'endpoint, preshared key differ' },
        before: { endpoint: null, allowed_ips: one.allowedIps, keepalive: one.keepalive, preshared_key: 'set' },
        after: {
          endpoint: '203.0.113.1:51820',
          allowed_ips: one.allowedIps,
          keepalive: one.keepalive,
          preshared_key: null,
        },
      },
    ]);
    expect(change(with_({ peers: others }))).toMatchObject([
      { action: 'add', target: one.publicKey, reason: 'a peer of the network is missing' },
    ]);
    const stranger = { ...one, publicKey: keyPair(9).publicKey, allowedIps: [] };
    expect(plan(desired, with_({ peers: [one, ...others, stranger] }), now)).toMatchObject([
      {
        do: 'remove-peers',
        publicKeys: [stranger.publicKey],
        changes: [{ action: 'remove', before: { allowed_ips: [] }, reason: 'not a peer of the network' }],
      },
    ]);
  });
});

describe('a route that moves to another connector', () => {
  it('is given before it is taken, whatever the order of the peers: it belongs to one of them at each moment', () => {
    const withdrawn = desireFor(laptop, network([{ ...first, withdrawn: [route] }, second, laptop]));
    expect(withdrawn.config.peers.map(({ publicKey }) => publicKey)).toEqual([first.publicKey, second.publicKey]);
    const steps = plan(withdrawn, settled, now);
    expect(setKeys(steps)).toEqual([second.publicKey, first.publicKey]);
    const back = simulate(settled, steps);
    expect(plan(withdrawn, back, now)).toEqual([]);
    expect(setKeys(plan(desired, back, now))).toEqual([first.publicKey, second.publicKey]);
  });

  it('leaves the order of the others as it is', () => {
    const many = network([first, second, laptop, peer(4, { endpoint: dialled(4) }), peer(5, { endpoint: dialled(5) })]);
    const before = simulate(bare, plan(desireFor(laptop, many), bare, now));
    const peers = before.device?.peers.map((each) => ({ ...each, keepalive: null })) ?? [];
    const spoiled = { ...before, device: before.device && { ...before.device, peers } };
    expect(setKeys(plan(desireFor(laptop, many), spoiled, now))).toEqual(peers.map(({ publicKey }) => publicKey));
  });
});
