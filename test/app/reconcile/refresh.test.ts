import { describe, expect, it } from 'vitest';
import type { MapReading } from '../../../src/api/service.ts';
import { refresh } from '../../../src/app/reconcile/refresh.ts';
import { applyUpdate, noUpdate } from '../../../src/app/reconcile/state-update.ts';
import type { SshClient, Underlay } from '../../../src/core/host-state/actual.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { TunnelConfig } from '../../../src/core/wg-quick/parse.ts';
import { renderConfig } from '../../../src/core/wg-quick/render.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { address, keyPair, network, options, peer, prefix, underlay } from '../../core/samples.ts';
import { joinedTo, mapAt, self } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerRemoving, answerWith } from '../simulated-service.ts';

const known = mapAt('"1"', [peer(2)]);

/** The revision and the base in the request of the host. */
async function requestOf(map: NetworkMap, changes: Partial<Joined> = {}) {
  const state = joinedTo(map, changes);
  const simulated = await SimulatedHost.with(state);
  simulated.service.mapReplies = [answerWith(mapAt('"3"', [peer(2), peer(3)]))];
  const { update } = await refresh(simulated.tools, state);
  expect(update.map?.revision).toBe('"3"');
  return simulated.service.mapRequests.map(({ revision, base }) => ({ revision, base }));
}

describe('the request for the newest map', () => {
  it('accepts changes when the host applied the last one', async () => {
    expect(await requestOf(known)).toEqual([{ revision: '"1"', base: known }]);
  });

  it('needs the whole map when the last one was refused: the host kept only its revision', async () => {
    expect(await requestOf(known, { refused: '"2"' })).toEqual([{ revision: '"2"', base: null }]);
  });

  it('whole, where the last one has no revision', async () => {
    expect(await requestOf({ ...known, revision: null })).toEqual([{ revision: null, base: null }]);
  });
});

it('recognizes this host by a key that changed during the long poll', async () => {
  const state = joinedTo(mapAt('"1"', [peer(2)]));
  const simulated = await SimulatedHost.with(state);
  const renamed = network([{ ...self, publicKey: keyPair(9).publicKey }, peer(2)], { revision: '"2"' });
  simulated.service.mapReplies = [
    async () => {
      await simulated.tools.store.write({ ...state, keyPair: keyPair(9) });
      return { map: renamed, waited: true };
    },
  ];
  const { update, failure } = await refresh(simulated.tools, state);
  expect(failure).toBeNull();
  expect(update).toMatchObject({ map: renamed, requestedAs: keyPair(1).publicKey });
  const next = applyUpdate(await simulated.state(), update);
  expect(next.membership.map).toEqual(renamed);
});

describe('a service that lists an earlier key of this host', () => {
  const proof = { serial: 5, signature: 'signed' };
  const rotated = joinedTo(
    network([{ ...self, publicKey: keyPair(9).publicKey, proof }, peer(2)], { revision: '"1"' }),
    {
      keyPair: keyPair(9),
      keySerial: 5,
    },
  );
  /** The map of a backup, and what the service says once it was asked to list another key. */
  const former = (serial: number | null) =>
    network([{ ...self, ...(serial !== null && { proof: { serial, signature: 'old' } }) }, peer(2)], {
      revision: '"0"',
    });

  it.each([null, 4])(
    'is asked to list the present one, by the proof that it was given, where its own is older (%s)',
    async (serial) => {
      const simulated = await SimulatedHost.with(rotated);
      simulated.service.mapReplies = [answerWith(former(serial)), answerWith(rotated.membership.map)];
      const { update, failure } = await refresh(simulated.tools, rotated);
      expect([failure, update.map?.peers.length]).toEqual([null, 2]);
      expect(simulated.service.registeredKeys).toEqual([{ publicKey: keyPair(9).publicKey, proof }]);
      expect(simulated.service.mapRequests.map(({ revision }) => revision)).toEqual(['"1"', null]);
    },
  );

  it('is asked to list the key to which the host changed while the answer was held back', async () => {
    const simulated = await SimulatedHost.with(rotated);
    const later = { serial: 6, signature: 'signed too' };
    const latest = network([{ ...self, publicKey: keyPair(10).publicKey, proof: later }, peer(2)], {
      revision: '"2"',
    });
    simulated.service.mapReplies = [
      async () => {
        const changed = { keyPair: keyPair(10), keySerial: 6 };
        const { membership } = rotated;
        await simulated.tools.store.write({ ...rotated, ...changed, membership: { ...membership, map: latest } });
        return { map: former(4), waited: true };
      },
      answerWith(latest),
    ];
    await refresh(simulated.tools, rotated);
    expect(simulated.service.registeredKeys).toEqual([{ publicKey: keyPair(10).publicKey, proof: later }]);
  });

  it('is not asked to where its proof is newer: a copy of this host has changed its key', async () => {
    const simulated = await SimulatedHost.with(rotated);
    simulated.service.mapReplies = [answerWith(former(5))];
    const { failure } = await refresh(simulated.tools, rotated);
    expect(failure?.message).toContain('lists another key for this host (peer 1)');
    expect(simulated.service.registeredKeys).toEqual([]);
  });

  it('changes nothing on this host if it takes no other', async () => {
    const simulated = await SimulatedHost.with(rotated);
    simulated.service.onRegisterKey = async () => false;
    simulated.service.mapReplies = [answerWith(former(null))];
    const { update, failure } = await refresh(simulated.tools, rotated);
    expect([failure?.name, update]).toEqual(['CannotRotate', noUpdate]);
  });
});

it('does not move this host to another address than it joined with', async () => {
  const state = joinedTo(known);
  const simulated = await SimulatedHost.with(state);
  const moved = network([{ ...self, address: address('10.77.0.9') }, peer(2)], { revision: '"2"' });
  simulated.service.mapReplies = [answerWith(moved)];
  const { update, failure } = await refresh(simulated.tools, state);
  expect(update).toEqual(noUpdate);
  expect(failure?.name).toBe('BadReply');
  expect(failure?.message).toContain('lists this host with 10.77.0.9, and it joined with 10.77.0.1');
});

describe('a network that moves to another range', () => {
  const up: TunnelConfig = {
    ...{ privateKey: keyPair(1).privateKey, listenPort: null, fwmark: null, mtu: 1420, peers: [] },
    address: { address: self.address, length: 24 },
  };
  const movedTo = (range: string, revision = '"2"') => mapAt(revision, [peer(2)], { cidr: prefix(range) });

  /** Refreshes twice, 31 s apart, on a host that joined with 10.77.0.0/24 and is up. */
  async function refreshTwice(
    range: string,
    {
      observed = {},
      sshClients = [],
      state: changes = {},
    }: { observed?: Partial<Underlay>; sshClients?: readonly SshClient[]; state?: Partial<Joined> } = {},
  ) {
    const state = joinedTo(known, changes);
    const simulated = await SimulatedHost.with(state);
    await simulated.tools.store.writeConfig('cpn0', renderConfig(up));
    simulated.sshClients = sshClients;
    simulated.actual = { ...simulated.actual, underlay: { ...underlay, ...observed } };
    simulated.service.mapReplies = [answerWith(movedTo(range))];
    const first = await refresh(simulated.tools, state);
    await simulated.tools.store.amendNotes('cpn0', first.notes);
    simulated.seconds += 31;
    const second = await refresh(simulated.tools, state);
    return [first, second].map(({ update, failure }) => ({ cidr: update.map?.cidr, failure: failure?.message }));
  }

  it.each([
    ['10.0.0.0/8', 'has the range 10.0.0.0/8, not 10.77.0.0/24, in network office'],
    ['10.77.0.0/23', 'has the range 10.77.0.0/23, not 10.77.0.0/24, in network office'],
  ])('to %s is believed when it is said twice', async (range, reason) => {
    const [first, second] = await refreshTwice(range);
    expect(first).toEqual({ cidr: undefined, failure: expect.stringContaining(reason) });
    expect(second).toEqual({ cidr: range, failure: undefined });
  });

  const resolvers = [address('10.9.9.5')];
  const sshClients = [{ address: address('10.9.9.5'), local: address('203.0.113.22') }];
  it.each<[string, string, Parameters<typeof refreshTwice>[1]]>([
    ['10.0.0.0/8', 'covers a resolver (10.9.9.5)', { observed: { resolvers } }],
    ['10.0.0.0/8', 'covers an SSH client (10.9.9.5)', { sshClients }],
    ['10.0.0.0/8', 'covers the default gateway (10.1.1.1)', { observed: { gateways: [address('10.1.1.1')] } }],
    [
      '10.0.0.0/8',
      'covers the control plane (10.9.9.9)',
      { state: { service: { url: 'https://10.9.9.9', insecureHttp: false } } },
    ],
    [
      '10.0.0.0/8',
      'overlaps 10.5.0.0/24, which this host is in (eth0)',
      { observed: { connected: [{ prefix: prefix('10.5.0.0/24'), link: 'eth0' }] } },
    ],
    ['0.0.0.0/1', 'is half of the default route', {}],
    ['0.0.0.0/4', 'overlaps unspecified addresses', {}],
  ])('to %s is refused where that %s', async (range, reason, host) => {
    const remedy = `"cpn set cpn0 --allow-route ${range}" accepts it`;
    for (const { cidr, failure } of await refreshTwice(range, host)) {
      expect(cidr).toBeUndefined();
      expect(failure).toContain(`moves network office from 10.77.0.0/24 to ${range}, which ${reason}`);
      expect(failure).toContain(remedy);
    }
  });

  it('is no matter for a resolver and a control plane in the range that it has', async () => {
    const host = {
      observed: { resolvers: [address('10.77.0.2')] },
      state: { service: { url: 'https://10.77.0.9', insecureHttp: false } },
    };
    expect((await refreshTwice('10.77.0.0/16', host))[1]).toEqual({ cidr: '10.77.0.0/16', failure: undefined });
  });

  it('is taken where a person lets it through, once it is said twice', async () => {
    const allowed = { ...options, allowRoutes: [prefix('10.0.0.0/8')] };
    const [first, second] = await refreshTwice('10.0.0.0/8', { observed: { resolvers }, state: { options: allowed } });
    expect([first?.cidr, second?.cidr]).toEqual([undefined, '10.0.0.0/8']);
  });

  it('is not one that becomes narrower, or one that this host did not know', async () => {
    expect((await refreshTwice('10.77.0.0/25'))[0]).toEqual({ cidr: '10.77.0.0/25', failure: undefined });
    const { membership } = joinedTo(mapAt('"1"', [peer(2)], { cidr: prefix('10.77.0.1/32') }));
    expect((await refreshTwice('10.77.0.0/24', { state: { membership } }))[0]?.cidr).toBe('10.77.0.0/24');
  });
});

describe('a map without the other peers of a network', () => {
  const three = mapAt('"1"', [peer(2), peer(3)]);
  const alone = mapAt('"2"', []);

  it('is believed at once where the service states that they are gone', async () => {
    const simulated = await SimulatedHost.with(joinedTo(three));
    simulated.service.mapReplies = [answerRemoving(alone, [2, 3])];
    const { update, failure } = await refresh(simulated.tools, joinedTo(three));
    expect([failure, update.map?.revision, update.removed, update.isRepeated]).toEqual([null, '"2"', [2, 3], false]);
  });

  it.each<[string, readonly number[]]>([
    ['it merely lacks them', []],
    ['one of them is not stated to be gone', [3]],
    ['others are stated to be gone', [7, 8]],
  ])('needs its second reply where %s', async (_, removed) => {
    const state = joinedTo(three);
    const simulated = await SimulatedHost.with(state);
    simulated.service.mapReplies = [answerRemoving(alone, removed)];
    const first = await refresh(simulated.tools, state);
    expect([first.failure?.name, first.update]).toEqual(['Unconfirmed', noUpdate]);
    await simulated.tools.store.amendNotes('cpn0', first.notes);
    simulated.seconds += 31;
    expect((await refresh(simulated.tools, state)).update.isRepeated).toBe(true);
  });
});

describe('the confirmation of a map with a longest age', () => {
  const aged = mapAt('"1"', [peer(2)], { maxAge: 1600 });
  const servedAt = Date.parse('2031-01-01T00:00:00Z');
  const confirmBy = async (state: Joined, answer: MapReading) => {
    const simulated = await SimulatedHost.with(state);
    simulated.service.mapReplies = [() => answer];
    const { update, notes } = await refresh(simulated.tools, state);
    return { update, notes, simulated };
  };

  it('counts in the time of the service, whatever the wall clock of the host shows', async () => {
    const state = joinedTo(aged);
    const { update, notes, simulated } = await confirmBy(state, { map: null, waited: true, servedAt });
    expect(update).toMatchObject({ map: null, confirmedAt: servedAt });
    expect(notes.sync.clock).toEqual({ service: servedAt, uptime: simulated.tools.uptime() });
    expect(applyUpdate(state, update).confirmed).toBe(servedAt);
  });

  it('is saved where it is due, and goes with the longest age', async () => {
    const state = joinedTo(aged, { confirmed: servedAt - 99_000 });
    const { update } = await confirmBy(state, { map: null, waited: true, servedAt });
    expect(applyUpdate(state, update)).toBe(state);
    const due = joinedTo(aged, { confirmed: servedAt - 100_000 });
    expect(applyUpdate(due, update).confirmed).toBe(servedAt);
    expect(applyUpdate(joinedTo(mapAt('"1"', [peer(2)]), { confirmed: 7 }), update)).not.toHaveProperty('confirmed');
  });

  it('is none where the service still has the map that this host refused, and where it is held', async () => {
    const refused = await confirmBy(joinedTo(aged, { refused: '"2"' }), { map: null, waited: true, servedAt });
    expect(refused.update.confirmedAt).toBeUndefined();
    const held = await confirmBy(joinedTo(aged), { map: mapAt('"2"', [], { maxAge: 1600 }), waited: true, servedAt });
    expect(held.update).toEqual(noUpdate);
  });
});
