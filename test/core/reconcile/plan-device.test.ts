import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import type { Actual, Device } from '../../../src/core/host-state/actual.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { changesOnlyPeers } from '../../../src/core/reconcile/plan-device.ts';
import type { Step } from '../../../src/core/reconcile/step.ts';
import { address, bare, desireFor, dialled, keyPair, network, options, peer, prefix } from '../samples.ts';
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

  it('names the endpoint that a peer keeps, if that is not set', () => {
    const learned = { host: address('198.51.100.9'), port: 7 };
    const [one, ...others] = settled.device?.peers ?? [];
    if (one === undefined) throw new Error('there is no peer');
    const roamed = { ...one, endpoint: learned, allowedIps: [], latestHandshake: now - 1 };
    const [step] = plan(desired, with_({ peers: [roamed, ...others] }), now);
    expect(step).toMatchObject({ peers: [{ publicKey: one.publicKey, endpoint: null }] });
    expect(step?.changes).toMatchObject([
      {
        ...{ before: { endpoint: '198.51.100.9:7' }, after: { endpoint: '198.51.100.9:7' } },
        reason: 'allowed IPs differ',
      },
    ]);
    const old = { ...roamed, latestHandshake: now - 1000 };
    expect(plan(desired, with_({ peers: [old, ...others] }), now)[0]?.changes).toMatchObject([
      { after: { endpoint: '203.0.113.1:51820' }, reason: 'allowed IPs, endpoint differ' },
    ]);
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

describe('the endpoint of a peer', () => {
  const at = { host: address('198.51.100.9'), port: 4000 };
  const heard = with_({
    peers: settled.device?.peers.map((each) => ({ ...each, endpoint: at, latestHandshake: now })) ?? [],
  });

  it('that was learned gives way to one that moved in the network, for that peer alone', () => {
    expect(plan(desired, heard, now)).toEqual([]);
    const [step, ...others] = plan(desired, heard, now, new Set([second.publicKey]));
    expect(others).toEqual([]);
    expect(step).toMatchObject({
      do: 'configure-device',
      peers: [{ publicKey: second.publicKey, endpoint: dialled(2) }],
    });
  });
});

describe('steps that change only the peers', () => {
  const peersAlone: Step = { do: 'configure-device', link: 'cpn0', peers: [], changes: [] };
  const removal: Step = { do: 'remove-peers', link: 'cpn0', publicKeys: [], changes: [] };
  const renewal: Step = { do: 'renew-peers', link: 'cpn0', peers: [], changes: [] };

  it.each<[string, readonly Step[], boolean]>([
    ['none', [], true],
    ['each of their kinds', [peersAlone, removal, renewal], true],
    ['a private key', [{ ...peersAlone, privateKey: keyPair(3).privateKey }], false],
    ['a listen port', [{ ...peersAlone, listenPort: 0 }], false],
    ['a mark', [{ ...peersAlone, fwmark: 8349 }], false],
    ['a mark that goes', [{ ...peersAlone, fwmark: null }], false],
    ['another step after them', [removal, { do: 'delete-link', link: 'cpn0', changes: [] }], false],
    ['another step before them', [{ do: 'create-link', link: 'cpn0', changes: [] }, peersAlone], false],
  ])('are distinguished from others: %s', (_, steps, isAlone) => expect(changesOnlyPeers(steps)).toBe(isAlone));
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

  it('is given before it is taken also where the peer that loses it gains what no peer had', () => {
    const fresh = prefix('192.168.60.0/24');
    const both = network([first, second, laptop], { routes: [route, fresh] });
    const moved = desireFor(laptop, {
      ...both,
      peers: [{ ...first, routes: [fresh], withdrawn: [route] }, { ...second, routes: [route] }, laptop],
    });
    expect(setKeys(plan(moved, settled, now))).toEqual([second.publicKey, first.publicKey]);
  });

  it('leaves the order of the others as it is', () => {
    const many = network([first, second, laptop, peer(4, { endpoint: dialled(4) }), peer(5, { endpoint: dialled(5) })]);
    const before = simulate(bare, plan(desireFor(laptop, many), bare, now));
    const peers = before.device?.peers.map((each) => ({ ...each, keepalive: null })) ?? [];
    const spoiled = { ...before, device: before.device && { ...before.device, peers } };
    expect(setKeys(plan(desireFor(laptop, many), spoiled, now))).toEqual(peers.map(({ publicKey }) => publicKey));
  });
});
