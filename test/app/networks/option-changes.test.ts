import { describe, expect, it } from 'vitest';
import {
  describeIneffective,
  findDisallowed,
  findSecretLosses,
  type ResolvedChanges,
  resolveEndpoint,
  withChanges,
} from '../../../src/app/networks/option-changes.ts';
import { tagOf } from '../../../src/core/crypto/network-secret.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { WrongUsage } from '../../../src/core/errors/index.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { mostProbes, type ProbeTarget } from '../../../src/core/map/options.ts';
import { parsePrefixMap } from '../../../src/core/map/prefix-maps.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { address, dialled, keyPair, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt, noOptionChanges as none } from '../joined-state.ts';
import { one, serving, two } from '../serving.ts';
import { SimulatedHost } from '../simulated-host.ts';

const asked = (changes: Partial<ResolvedChanges>): ResolvedChanges => ({ ...(none as ResolvedChanges), ...changes });
const probe = (number: number): ProbeTarget => ({ host: `192.168.50.${number}`, port: null });
const probes = (count: number) => Array.from({ length: count }, (_, at) => probe(at + 1));

it('each prefix that is no longer allowed was removed', () => {
  const allowing = (...allowRoutes: ReturnType<typeof prefix>[]) => ({ options: { ...options, allowRoutes } });
  const third = prefix('10.1.0.0/16');
  expect(findDisallowed(allowing(one, two, third), allowing(two))).toEqual([one, third]);
});

it('the endpoint `auto` has the port that the same command gives', async () => {
  const { tools } = await SimulatedHost.empty();
  const changes = { ...none, options: { listenPort: 40_000 }, endpoint: 'auto' as const };
  expect(await resolveEndpoint(tools, joinedTo(mapAt('"1"', [])), changes)).toMatchObject({
    endpoint: { host: '192.0.2.254', port: 40_000 },
  });
});

it('a probe that is added again is stored once, and at most so many are', () => {
  const state = serving({ options: { ...options, probes: probes(2) } });
  expect(withChanges(state, asked({ addProbes: [probe(1)] })).options.probes).toEqual([probe(2), probe(1)]);
  const most = withChanges(state, asked({ addProbes: probes(mostProbes) }));
  expect(most.options.probes).toHaveLength(mostProbes);
  expect(() => withChanges(most, asked({ addProbes: [probe(mostProbes + 1)] }))).toThrow(
    `${mostProbes + 1} hosts would be probed; at most ${mostProbes} can be`,
  );
});

describe('a map', () => {
  const map = (text: string) => parsePrefixMap(text);
  const [first, second] = [map('10.201.1.0/24=192.168.1.0/24'), map('10.201.2.0/24=192.168.2.0/24')];
  const state = serving({ options: { ...options, maps: [first, second] } });

  it('replaces that of the same route, and goes with it', () => {
    const other = map('10.201.1.0/24=192.168.7.0/24');
    expect(withChanges(state, asked({ addMaps: [other] })).options.maps).toEqual([second, other]);
    expect(withChanges(state, asked({ dropMaps: [first.route] })).options.maps).toEqual([second]);
    expect(withChanges(state, asked({})).options.maps).toEqual([first, second]);
  });

  it('is refused with the range of the network, with one that it overlaps, and on a host that is no connector', () => {
    const { cidr } = state.membership.map;
    expect(() => withChanges(state, asked({ addMaps: [{ route: prefix('10.201.3.0/24'), local: cidr }] }))).toThrow(
      `--map 10.201.3.0/24=${cidr} cannot apply: 10.201.3.0/24 is mapped to ${cidr}, which overlaps the network ${cidr}`,
    );
    expect(() => withChanges(state, asked({ addMaps: [map('10.201.3.0/24=192.168.1.0/24')] }))).toThrow('overlap in');
    const origin = { ...state, enrollment: { ...state.enrollment, type: 'origin' as const } };
    expect(() => withChanges(origin, asked({ addMaps: [first] }))).toThrow('is joined as origin');
  });

  it('that is not there is dropped without effect, and with a warning', () => {
    expect(describeIneffective(state, asked({ dropMaps: [one, first.route] }))).toEqual([
      `--drop-map ${one} has no effect: cpn0 does not map it`,
    ]);
  });
});

it('the network secret is replaced, removed or kept', () => {
  const [before, after] = [new Secret('one'), new Secret('two')];
  const state = joinedTo(mapAt('"1"', []), { networkSecret: before });
  expect(withChanges(state, asked({})).networkSecret).toBe(before);
  expect(withChanges(state, asked({ networkSecret: after })).networkSecret).toBe(after);
  expect(withChanges(state, asked({ networkSecret: null })).networkSecret).toBeNull();
});

it('a port is opened only if it is chosen', () => {
  const state = joinedTo(mapAt('"1"', []));
  const opened = asked({ options: { openFirewall: true } });
  expect(() => withChanges(state, opened)).toThrow(WrongUsage);
  expect(withChanges(state, { ...opened, endpoint: dialled(1) }).options).toMatchObject({ listenPort: 51_820 });
});

it('a new name and a new rule for pins apply together', () => {
  const known = { peer: 2, address: address('10.77.0.2'), publicKey: keyPair(2).publicKey, identity: null, serial: 0 };
  const claimed = { ...known, publicKey: keyPair(22).publicKey };
  const state = joinedTo(mapAt('"1"', [peer(2, { publicKey: keyPair(22).publicKey })]), {
    pins: [{ ...known, claimed }],
  });
  const { membership } = withChanges(state, asked({ name: 'edge', options: { pin: 'strict' } }));
  expect([membership.peer.name, membership.map.peers[1]?.publicKey]).toEqual(['edge', known.publicKey]);
});

describe('a change of the network secret', () => {
  const secretOf = (byte: number) => new Secret(Buffer.alloc(32, byte).toString('base64'));
  const [known, other] = [secretOf(7), secretOf(8)];
  const plain = mapAt('"1"', [peer(2), peer(3)]);
  const tagged = mapAt('"1"', [peer(2, { secretTag: tagOf(known) }), peer(3, { secretTag: tagOf(other) })]);

  const find = (map: NetworkMap, networkSecret: Secret | null | undefined, changes: Partial<Joined> = {}) =>
    findSecretLosses(
      joinedTo(map, { networkSecret: known, ...changes }),
      networkSecret === undefined ? {} : { networkSecret },
    );

  it('another secret cuts off the peers that have the present one, or all others if none is known', () => {
    expect(find(tagged, other)).toEqual({ interface: 'cpn0', peers: ['peer-2'], isRemoval: false });
    expect(find(plain, other)).toEqual({ interface: 'cpn0', peers: ['peer-2', 'peer-3'], isRemoval: false });
  });

  it('a removal cuts them off too, and a first secret those that have none', () => {
    expect(find(tagged, null)).toEqual({ interface: 'cpn0', peers: ['peer-2'], isRemoval: true });
    expect(find(plain, other, { networkSecret: null })).toMatchObject({ peers: ['peer-2', 'peer-3'] });
  });

  it.each<[string, Secret | null | undefined, Partial<Joined>]>([
    ['no change', undefined, {}],
    ['the same secret', known, {}],
    ['a network that is down', other, { enabled: false }],
  ])('%s cuts off no peer', (_, networkSecret, changes) => {
    expect(find(plain, networkSecret, changes)).toBeNull();
  });
});
