import { describe, expect, it } from 'vitest';
import { awaitHandshake } from '../../../src/app/join/await-handshake.ts';
import type { JoinRequest } from '../../../src/app/join/join-request.ts';
import { keepOptions } from '../../../src/app/join/kept-options.ts';
import { isMovedNetwork } from '../../../src/app/join/moved-networks.ts';
import { findRejoinable, rejoinLeft } from '../../../src/app/join/rejoin.ts';
import { makeIdentity } from '../../../src/core/crypto/identity.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import type { Feature } from '../../../src/core/map/features.ts';
import type { FormerMembership } from '../../../src/store/former-networks.ts';
import { address, dialled, keyPair, options, peer } from '../../core/samples.ts';
import { joinedTo, mapAt, self } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const elsewhere = { url: 'https://203.0.113.98', insecureHttp: false };

it('a listen port that came from the endpoint follows it, and another one stays', () => {
  const endpoint = { ...dialled(1), port: 51_999 };
  const next = { ...endpoint, port: 52_000 };
  const portOf = (listenPort: number | null) => {
    const { enrollment } = joinedTo(map);
    const earlier = {
      enrollment: { ...enrollment, endpoint },
      options: { ...options, listenPort },
      networkSecret: null,
    };
    const asked = { options, networkSecret: null, named: new Set<never>() };
    return keepOptions(earlier, asked, next).options.listenPort;
  };
  expect([portOf(51_999), portOf(40_000)]).toEqual([52_000, 40_000]);
});

it('a network moved if another service lists this host with its key and its address', () => {
  const known = joinedTo(map);
  const listed = (changes: Partial<typeof self>, service = elsewhere) =>
    joinedTo({ ...map, peers: [{ ...self, ...changes }] }, { interface: 'cpn1', service });
  expect(isMovedNetwork(listed({}), known)).toBe(true);
  expect(isMovedNetwork(listed({ address: address('10.77.0.9') }), known)).toBe(false);
  expect(isMovedNetwork(listed({ publicKey: keyPair(9).publicKey }), known)).toBe(false);
  expect(isMovedNetwork(listed({}, known.service), known)).toBe(false);
});

describe('a network that was left', () => {
  const { membership: _, ...state } = joinedTo(map);
  const left: FormerMembership = {
    ...{ interface: 'cpn7', leftAt: '2026-01-01T00:00:00.000Z', service: state.service, features: null },
    ...{ network: { id: 8, name: 'lab' }, peer: { id: 4, name: 'before' }, publicKey: keyPair(4).publicKey },
    ...{ identity: makeIdentity(new Uint8Array(32)), keySerial: 7, accessToken: new Secret('cpp_x') },
  };
  const needed: readonly Feature[] = ['enroll-identity-proof', 'enroll-current-networks'];
  const pending = { ...state, membership: null, features: needed };
  const request = { named: new Set() } as unknown as JoinRequest;

  it.each<[string, Partial<FormerMembership>, readonly Feature[], readonly number[], boolean]>([
    ['by its identity', {}, needed, [7], true],
    ['not at another control plane', { service: elsewhere }, needed, [], false],
    ['not without an identity', { identity: null }, needed, [], false],
    ['not if this host is in it again', {}, needed, [8], false],
    ['not where identities are not proved', {}, ['enroll-current-networks'], [], false],
    ['not where a key may be used for it unseen', {}, ['enroll-identity-proof'], [], false],
  ])('is joined again %s', async (_, changes, features, joined, isJoinable) => {
    const { tools } = await SimulatedHost.empty();
    await tools.store.writeFormer({ memberships: [{ ...left, ...changes }], folders: [] });
    expect(await findRejoinable(tools, { ...pending, features }, joined)).toHaveLength(isJoinable ? 1 : 0);
  });

  it.each([
    [new Set<never>(), 'before'],
    [new Set(['name'] as const), 'peer-1'],
  ])('is joined under its former name, unless one is given', async (named, name) => {
    const { tools } = await SimulatedHost.empty();
    const { enrollment, identity, keySerial } = await rejoinLeft(tools, pending, left, { ...request, named });
    expect([enrollment.name, identity, keySerial > 7]).toEqual([name, left.identity, true]);
    expect((await tools.store.read('cpn0'))?.enrollment.name).toBe(name);
  });
});

describe('the wait for a first handshake', () => {
  it('is none for the own endpoint of this host', async () => {
    const own = { ...map, peers: [{ ...self, endpoint: dialled(1) }, peer(2)] };
    const { tools } = await SimulatedHost.with(joinedTo(own));
    expect(await awaitHandshake(tools, joinedTo(own), null)).toEqual({ handshake: null, answered: null });
  });

  it('takes seven seconds by default', async () => {
    const simulated = await SimulatedHost.with(joinedTo(map));
    const sent: string[] = [];
    simulated.onHandshakeTrigger = (to) => sent.push(to);
    const { seconds } = simulated;
    expect(await awaitHandshake(simulated.tools, joinedTo(map), null)).toEqual({ handshake: false, answered: null });
    expect([simulated.seconds - seconds, sent]).toEqual([7, ['10.77.0.2']]);
  });
});
