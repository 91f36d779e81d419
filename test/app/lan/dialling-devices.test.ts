import { describe, expect, it } from 'vitest';
import { findLastConnectors } from '../../../src/app/drain/drain.ts';
import { findDiallingDevices } from '../../../src/app/lan/dialling-devices.ts';
import { findHeldKeys } from '../../../src/app/rotation/rotate.ts';
import { Refused, Unreachable } from '../../../src/core/errors/index.ts';
import type { NetworkMap, Peer } from '../../../src/core/map/model.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, network, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { one, range, serving, two } from '../serving.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail, type MapReply } from '../simulated-service.ts';

const device = (number: number, connector: number | null) =>
  peer(number, { name: `phone-${number}`, type: 'admin_device', via: { connector } });
const known = mapAt('"1"', [device(3, 1), device(4, 2), device(5, null), peer(6)]);
const newer = mapAt('"2"', [device(3, 2), device(7, 1)]);
const away = new Unreachable('https://x', 'no', { delivered: false, heard: false, retryAfterMs: null });

const connectorOf = (map: NetworkMap, changes: Partial<Joined> = {}): Joined => {
  const state = joinedTo(map, changes);
  return { ...state, enrollment: { ...state.enrollment, type: 'connector' } };
};

describe('the devices that dial only this connector', () => {
  const cases: readonly (readonly [string, MapReply, readonly string[]])[] = [
    ['are those of the newest map', answerWith(newer), ['phone-7']],
    ['are those of the saved map while the control plane is away', fail(away), ['phone-3']],
    ['are those of the saved map after a refusal', fail(new Refused(401, 'reading', 'no', null)), ['phone-3']],
    ['are those of the saved map when it is said to be current', () => ({ map: null, waited: false }), ['phone-3']],
  ];

  it.each(cases)('%s', async (_, reply, names) => {
    const { tools, service } = await SimulatedHost.with(connectorOf(known));
    service.mapReplies = [reply];
    expect(await findDiallingDevices(tools, connectorOf(known))).toEqual(names);
    // The whole map: a device may be newer than the last pass.
    expect(service.mapRequests.map(({ revision }) => revision)).toEqual([null]);
  });

  it('are known without a token too, and not looked for on another host, or before the join is finished', async () => {
    const { tools, service } = await SimulatedHost.with(connectorOf(known));
    const { membership } = connectorOf(known);
    const tokenless = connectorOf(known, { membership: { ...membership, accessToken: null } });
    expect(await findDiallingDevices(tools, tokenless)).toEqual(['phone-3']);
    expect(await findDiallingDevices(tools, joinedTo(known))).toEqual([]);
    expect(await findDiallingDevices(tools, { ...connectorOf(known), membership: null })).toEqual([]);
    expect(service.mapRequests).toEqual([]);
  });

  it('hide no bug', async () => {
    const { tools, service } = await SimulatedHost.with(connectorOf(known));
    service.mapReplies = [fail(new TypeError('a bug'))];
    await expect(findDiallingDevices(tools, connectorOf(known))).rejects.toThrow('a bug');
  });

  it('are asked about before a change of the key, but not where one is under way', async () => {
    const { tools, service } = await SimulatedHost.with(connectorOf(known));
    service.mapReplies = [fail(away)];
    expect(await findHeldKeys(tools, undefined)).toEqual([{ interface: 'cpn0', dialling: ['phone-3'] }]);
    const rotation = { phase: 'announcing', proof: null, wayBack: null, begunAt: 'x', witnesses: [] } as const;
    const { keyPair } = joinedTo(known);
    await tools.store.write(
      connectorOf(known, { rotation: { ...rotation, keyPair, begunAt: '2026-01-01T00:00:00.000Z' } }),
    );
    expect(await findHeldKeys(tools, undefined)).toEqual([]);
    const none = connectorOf(mapAt('"1"', [device(4, 2)]), { interface: 'cpn1' });
    await tools.store.write(none);
    expect(await findHeldKeys(tools, 'cpn1')).toEqual([]);
  });
});

describe('what nothing serves once this connector is drained', () => {
  const self = peer(1, { type: 'connector', endpoint: dialled(1) });
  const other = (changes: Partial<Peer> = {}) => peer(2, { type: 'connector', endpoint: dialled(2), ...changes });
  const hosts = [peer(5), peer(6)];
  const lists = (...peers: readonly Peer[]) => network([self, ...peers], { routes: [one, two] });
  const bothRoutes = { routes: [one, two] };
  const cases: readonly (readonly [string, NetworkMap, Partial<Joined>, object | null])[] = [
    ['is nothing where another one takes over', lists(other(), ...hosts), {}, null],
    ['is all where it is alone', lists(...hosts), {}, { ...bothRoutes, relayed: ['peer-5', 'peer-6'] }],
    ['is no relaying for a single host', lists(peer(5)), {}, { ...bothRoutes, relayed: [] }],
    ['is what the other one does not serve', lists(other({ routes: [one] })), {}, { routes: [two], relayed: [] }],
    ['is what the other one withdrew', lists(other({ withdrawn: [two] })), {}, { routes: [two], relayed: [] }],
    [
      'is the relaying that the other one withdrew',
      lists(other({ withdrawn: [range] }), ...hosts),
      {},
      { routes: [], relayed: ['peer-5', 'peer-6'] },
    ],
    [
      'is all where the other one is silent',
      lists(other(), ...hosts),
      { failed: [{ peer: 2, back: false }] },
      { ...bothRoutes, relayed: ['peer-5', 'peer-6'] },
    ],
    ['is nothing where the other one is back', lists(other(), ...hosts), { failed: [{ peer: 2, back: true }] }, null],
  ];

  it.each(cases)('%s', async (_, map, changes, unserved) => {
    const { tools, service } = await SimulatedHost.with(connectorOf(map, changes));
    service.mapReplies = [fail(away)];
    const found = await findLastConnectors(tools, undefined, false);
    const names = { interface: 'cpn0', network: 'office', dialling: [] };
    expect(found).toEqual(unserved === null ? [] : [{ ...unserved, ...names }]);
    expect(service.mapRequests).toEqual([]);
  });

  it('are its devices too where it is taken down', async () => {
    const map = lists(other(), device(3, 1));
    const { tools, service } = await SimulatedHost.with(connectorOf(map));
    service.mapReplies = [fail(away)];
    expect(await findLastConnectors(tools, undefined, false)).toEqual([]);
    expect(await findLastConnectors(tools, undefined, true)).toMatchObject([{ dialling: ['phone-3'], routes: [] }]);
  });

  it('is nothing that it has withdrawn, and nothing of a network that no longer lists it', async () => {
    const drained = network([{ ...self, withdrawn: [range, one, two] }, ...hosts], { routes: [one, two] });
    const { tools } = await SimulatedHost.with(connectorOf(drained));
    expect(await findLastConnectors(tools, undefined, false)).toEqual([]);
    const unlisted = await SimulatedHost.with(connectorOf(network(hosts, { routes: [one] })));
    expect(await findLastConnectors(unlisted.tools, undefined, true)).toEqual([]);
    const origin = await SimulatedHost.with(serving({}, 'origin'));
    await expect(findLastConnectors(origin.tools, undefined, false)).rejects.toThrow('only a connector');
  });
});
