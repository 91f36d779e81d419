import { describe, expect, it } from 'vitest';
import { applyUpdate, noUpdate, type StateUpdate } from '../../../src/app/reconcile/state-update.ts';
import type { NetworkMap, Peer } from '../../../src/core/map/model.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { address, dialled, keyPair, options, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';

const two = peer(2, { endpoint: { host: 'edge.example', port: 51_820 } });
const map = mapAt('"1"', [two, peer(3), peer(10)]);
const names = { 'edge.example': [address('203.0.113.2')] };
const state = joinedTo(map, { service: { url: 'https://api.example', insecureHttp: false }, resolved: names });
const update = (changes: Partial<StateUpdate>, before: Joined = state) =>
  applyUpdate(before, { ...noUpdate, ...changes });

describe('an update without news', () => {
  const failed = [{ peer: 3, back: false }];
  const pathMtu = { mtu: 1300, peer: 2, underlay: 'x', measuredAt: '2026-01-01T00:00:00.000Z' };
  const known = { ...state, failed, pathMtu };
  it.each<[string, Partial<StateUpdate>]>([
    ['nothing', {}],
    ['the same map', { map }],
    ['the same addresses', { resolved: { 'edge.example': [address('203.0.113.2')] } }],
    ['addresses of a name that nothing uses', { resolved: { 'former.example': [address('203.0.113.9')] } }],
    ['the same failures', { failed: [{ peer: 3, back: false }] }],
    ['the same measurement', { pathMtu: { ...pathMtu } }],
    ['a confirmation, where the map has no longest age', { confirmedAt: 7 }],
    ['a listener of a service with TLS', { listener: 0 }],
    ['the end of a deletion, where there is none', { isBack: true }],
  ])('is the same state: %s', (_, changes) => {
    expect(update(changes, known)).toBe(known);
  });
});

describe('the addresses of names', () => {
  it('are added to the known ones, and dropped with the last use of the name', () => {
    const resolved = { 'api.example': [address('203.0.113.7')], 'former.example': [address('203.0.113.9')] };
    expect(update({ resolved }).resolved).toEqual({ ...names, 'api.example': [address('203.0.113.7')] });
    const without = update({ map: mapAt('"2"', [peer(3)]), resolved: { 'api.example': [address('203.0.113.7')] } });
    expect(without.resolved).toEqual({ 'api.example': [address('203.0.113.7')] });
  });
});

describe('the failures of peers', () => {
  const failed = [10, 3, 99].map((id) => ({ peer: id, back: false }));
  it('are sorted by id, and only those of listed peers', () => {
    expect(update({ failed }).failed.map((each) => each.peer)).toEqual([3, 10]);
  });

  it('stay where none are given, but for peers that left the map, and end with an empty list', () => {
    const before = update({ failed });
    expect(update({ failed: null }, before)).toBe(before);
    expect(update({ map: mapAt('"2"', [two, peer(3)]) }, before).failed).toEqual([{ peer: 3, back: false }]);
    expect(update({ failed: [] }, before).failed).toEqual([]);
  });
});

describe('the measured path MTU', () => {
  const pathMtu = { mtu: 1300, peer: 2, underlay: 'x', measuredAt: '2026-01-01T00:00:00.000Z' };
  it('is kept where there is nothing new, and ends with null', () => {
    const before = update({ pathMtu });
    expect(before.pathMtu).toEqual(pathMtu);
    expect(update({ pathMtu: undefined }, before).pathMtu).toEqual(pathMtu);
    expect(update({ pathMtu: null }, before).pathMtu).toBeNull();
  });
});

describe('the user that listens at the address of the service', () => {
  it.each([
    ['http://127.0.0.1:8080', true],
    ['http://[::1]:8080', true],
    ['http://localhost', true],
    ['https://127.0.0.1', false],
    ['http://203.0.113.9', false],
  ])('is recorded for %s: %s', (url, isRecorded) => {
    const service = { url, insecureHttp: true };
    const recorded = update({ listener: 0 }, { ...state, service });
    expect(recorded.service.listener).toBe(isRecorded ? 0 : undefined);
    const known = { ...state, service: { ...service, listener: 7 } };
    expect(update({ listener: 0 }, known)).toBe(known);
    expect(update({}, recorded).service.listener).toBe(recorded.service.listener);
  });
});

describe('a deletion', () => {
  const at = '2026-11-26T00:00:00.000Z';
  it('takes the network down, whatever else is received, and keeps its first time', () => {
    const deleted = update({ deletedAt: at, map: mapAt('"2"', []), failed: [{ peer: 3, back: false }] });
    expect(deleted).toEqual({ ...state, enabled: false, deletion: { at, resumes: true } });
    expect(update({ deletedAt: '2027-01-01T00:00:00.000Z' }, deleted)).toBe(deleted);
    expect(update({ deletedAt: at }, { ...state, enabled: false }).deletion).toEqual({ at, resumes: false });
  });

  it.each([true, false])('ends with a map, and the network is then up as before: %s', (enabled) => {
    const deleted = update({ deletedAt: at }, { ...state, enabled });
    const back = update({ isBack: true, map: mapAt('"2"', [two]) }, deleted);
    expect([back.enabled, 'deletion' in back, back.membership.map.revision]).toEqual([enabled, false, '"2"']);
    expect(update({ map: mapAt('"2"', [two]) }, deleted).deletion).toEqual(deleted.deletion);
  });
});

describe('a map', () => {
  const other = keyPair(101);
  const withSelf = (revision: string, self: Partial<Peer>): NetworkMap => {
    const received = mapAt(revision, [two]);
    return { ...received, peers: received.peers.map((each) => (each.id === 1 ? { ...each, ...self } : each)) };
  };

  it('from before the host changed its key is ignored, unless it has the key in use', () => {
    const rotated = { ...state, keyPair: other };
    const old = withSelf('"2"', {});
    expect(update({ map: old, requestedAs: keyPair(1).publicKey }, rotated)).toBe(rotated);
    expect(update({ map: old, requestedAs: other.publicKey }, rotated).membership.map.revision).toBe('"2"');
    const listed = withSelf('"2"', { publicKey: other.publicKey });
    expect(update({ map: listed, requestedAs: keyPair(1).publicKey }, rotated).membership.map.revision).toBe('"2"');
  });

  it('that was refused stays refused, and another one ends that', () => {
    const refusing = { ...state, refused: '"2"' };
    expect(update({ map: mapAt('"2"', [two]) }, refusing)).toBe(refusing);
    expect(update({ map: mapAt('"3"', [two]) }, refusing)).toMatchObject({ refused: null });
  });

  it('with the revision in use adds only the nonce of the network', () => {
    const { nonce: _, ...bare } = map;
    const before = joinedTo(bare);
    const nonced = update({ map: mapAt('"1"', []) }, before);
    expect(nonced).toEqual({ ...before, membership: { ...before.membership, map: { ...bare, nonce: map.nonce } } });
  });

  it('labels its peers as long as they are listed, and only on a host that resolves names', () => {
    const before = joinedTo(mapAt('"1"', [peer(2, { name: 'web' })]), { options: { ...options, hosts: true } });
    const labelsOf = ({ labels }: Joined) => Object.fromEntries(labels.map((each) => [each.peer, each.labels]));
    const named = update({ map: mapAt('"2"', [peer(2, { name: 'web' }), peer(3, { name: 'db' })]) }, before);
    expect(labelsOf(named)).toEqual({ 1: ['peer-1'], 2: ['web'], 3: ['db'] });
    const renamed = update({ map: mapAt('"3"', [peer(2, { name: 'www' })]) }, named);
    expect(labelsOf(renamed)).toEqual({ 1: ['peer-1'], 2: ['www', 'web'] });
    const unnamed = update({ map: mapAt('"4"', [peer(3)]) }, { ...renamed, options: { ...options, dns: false } });
    expect(unnamed.labels).toEqual([]);
  });

  it('with a longest age is confirmed, and without one loses its confirmation', () => {
    const aged = joinedTo({ ...map, maxAge: 1600 });
    expect(update({ confirmedAt: 1_000_000 }, aged).confirmed).toBe(1_000_000);
    const confirmed = { ...aged, confirmed: 1_000_000 };
    expect(update({ confirmedAt: 1_000_001 }, confirmed)).toBe(confirmed);
    expect('confirmed' in update({ map: mapAt('"2"', [peer(2, { endpoint: dialled(2) })]) }, confirmed)).toBe(false);
  });
});
