import { describe, expect, it } from 'vitest';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { bringUp } from '../../../src/app/networks/up.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate, type StateUpdate } from '../../../src/app/reconcile/state-update.ts';
import { rotateKey } from '../../../src/app/rotation/rotate.ts';
import { BadReply, CommandFailed, NotConfirmed, Refused, Unreachable } from '../../../src/core/errors/index.ts';
import { identifyMap } from '../../../src/core/map/map-validation.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { parseAddress, parsePrefix } from '../../../src/core/net/cidr.ts';
import { formatEndpoint, parseEndpoint } from '../../../src/core/net/endpoint.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerRemoving, answerWith, fail } from '../simulated-service.ts';

const relay = peer(2, { type: 'connector', endpoint: dialled(2) });
const before = mapAt('"1"', [relay]);
/** Moves a route onto this host, and so may cut it off. */
const after = mapAt('"2"', [relay], { routes: [parsePrefix('192.168.50.0/24'), parsePrefix('192.168.60.0/24')] });
const update = { map: after, resolved: null };
const options = { withinMs: 20_000 };
const gone = new Unreachable('https://203.0.113.99', 'gone', { delivered: false, heard: false, retryAfterMs: null });

/** A host that is as its state says, with one peer that answered just now. */
async function settledDesk(): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(before));
  await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
  simulated.updatePeer(2, {
    latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) - 10,
    rxBytes: 100,
    txBytes: 100,
  });
  simulated.steps.length = 0;
  simulated.observations = 0;
  simulated.deviceReadings = 0;
  return simulated;
}

const routesOf = (simulated: SimulatedHost) => simulated.actual.routes.map((route) => route.prefix);
const throwsOf = (simulated: SimulatedHost) => simulated.actual.throwRoutes?.map((route) => route.prefix);

describe('a pass', () => {
  it('without drift observes once, and changes and saves nothing', async () => {
    const simulated = await settledDesk();
    const pass = await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(pass).toMatchObject({ changes: [], isDrift: true });
    expect({
      observations: simulated.observations,
      steps: simulated.steps,
      asked: simulated.service.mapRequests,
    }).toEqual({
      observations: 1,
      steps: [],
      asked: [],
    });
  });

  it('with an update observes once before its changes, under the lock, and once after them what they concern', async () => {
    const simulated = await settledDesk();
    const { store } = simulated.tools;
    const locked: number[] = [];
    const lock: typeof store.lock = (work) => {
      locked.push(simulated.observations);
      return store.lock(work);
    };
    const newcomer = mapAt('"2"', [relay, peer(3, { endpoint: dialled(3) })]);
    const pass = await passNetwork(
      { ...simulated.tools, store: { ...store, lock } },
      'cpn0',
      { map: newcomer, resolved: null },
      options,
    );
    expect(pass?.changes.map(({ kind }) => kind)).toEqual(['file', 'peer']);
    const { observations, deviceReadings: deviceLooks } = simulated;
    expect({ observations, deviceLooks, locked }).toEqual({ observations: 1, deviceLooks: 1, locked: [0] });
  });

  it('observes all again after changes of more than the peers', async () => {
    const simulated = await settledDesk();
    simulated.actual = { ...simulated.actual, routes: [] };
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    const { observations, deviceReadings: deviceLooks } = simulated;
    // Without the lock, under it, and after the change.
    expect({ observations, deviceLooks }).toEqual({ observations: 3, deviceLooks: 0 });
  });

  it('fails where WireGuard has not taken over a peer', async () => {
    const simulated = await settledDesk();
    const { apply } = simulated.tools.host;
    simulated.tools.host.apply = async (step) => {
      if (step.do !== 'configure-device') await apply(step);
    };
    const map = mapAt('"2"', [relay, peer(3, { endpoint: dialled(3) })]);
    const work = passNetwork(simulated.tools, 'cpn0', { map, resolved: null }, options);
    await expect(work).rejects.toMatchObject({ name: 'NotConverged' });
  });

  it('repairs drift', async () => {
    const simulated = await settledDesk();
    simulated.actual = { ...simulated.actual, routes: [] };
    const pass = await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(pass).toMatchObject({ isDrift: true, changes: [{ action: 'add', kind: 'route' }] });
    expect(routesOf(simulated)).toEqual(['192.168.50.0/24']);
  });

  it('restores the route to the range, though a session comes through it', async () => {
    const simulated = await settledDesk();
    const sshClients = [{ address: parseAddress('10.77.0.9'), local: null }];
    simulated.sshClients = sshClients;
    simulated.actual = { ...simulated.actual, onLink: [] };
    const pass = await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(pass?.changes).toMatchObject([{ action: 'add', kind: 'route', target: '10.77.0.0/24' }]);
    expect(simulated.actual.onLink).toEqual(['10.77.0.0/24']);
    expect(simulated.actual.link?.addresses).toMatchObject([{ length: 24 }]);
  });

  it('restores a route with the sessions that came by it, though another program took it away', async () => {
    const simulated = await settledDesk();
    simulated.sshClients = [{ address: parseAddress('192.168.50.7'), local: parseAddress('203.0.113.22') }];
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    simulated.actual = { ...simulated.actual, routes: [] };
    const pass = await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(pass?.changes).toMatchObject([{ action: 'add', kind: 'route', target: '192.168.50.0/24' }]);
    expect(routesOf(simulated)).toEqual(['192.168.50.0/24']);
  });

  it('does not where the session may have begun while the tunnel was down', async () => {
    const simulated = await settledDesk();
    simulated.sshClients = [{ address: parseAddress('192.168.50.7'), local: parseAddress('203.0.113.22') }];
    await simulated.tools.store.write({ ...(await simulated.state()), enabled: false });
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    simulated.actual = { ...simulated.actual, routes: [] };
    await simulated.tools.store.write({ ...(await simulated.state()), enabled: true });
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(throwsOf(simulated)).toEqual(['192.168.50.7/32']);
  });

  it('keeps outside a session that a longer route of another program hides from the tunnel', async () => {
    const simulated = await settledDesk();
    simulated.sshClients = [{ address: parseAddress('192.168.50.7'), local: parseAddress('203.0.113.22') }];
    const routed = [{ prefix: parsePrefix('192.168.50.0/25'), link: 'eth1' }];
    simulated.actual = { ...simulated.actual, underlay: { ...simulated.actual.underlay, routed } };
    const pass = await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(pass?.evaluation?.desired.report).toMatchObject([
      { state: 'taken', reason: '192.168.50.7 stays outside: an SSH client' },
    ]);
    expect(throwsOf(simulated)).toEqual(['192.168.50.7/32']);
  });

  it('reads the SSH sessions only where it adds a route, and keeps the client of a session outside of it while the session lasts', async () => {
    const simulated = await settledDesk();
    simulated.sshClients = [{ address: parseAddress('192.168.60.7'), local: null }];
    simulated.sessionReads = 0;
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(simulated.sessionReads).toBe(0);
    simulated.service.mapReplies = [answerWith(after)];
    const pass = await passNetwork(simulated.tools, 'cpn0', update, options);
    expect(pass?.evaluation?.desired.report).toContainEqual(
      expect.objectContaining({ prefix: '192.168.60.0/24', reason: '192.168.60.7 stays outside: an SSH client' }),
    );
    expect(routesOf(simulated)).toEqual(['192.168.50.0/24', '192.168.60.0/24']);
    expect(throwsOf(simulated)).toEqual(['192.168.60.7/32']);
    expect((await simulated.state()).keptOutside).toEqual([{ address: '192.168.60.7', what: 'an SSH client' }]);
    const again = await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect([again?.changes, throwsOf(simulated)]).toEqual([[], ['192.168.60.7/32']]);
    simulated.sshClients = [];
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect([throwsOf(simulated), (await simulated.state()).keptOutside]).toEqual([[], []]);
    simulated.sessionReads = 0;
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(simulated.sessionReads).toBe(0);
  });

  it('that repairs drift leaves the files as they are', async () => {
    const simulated = await settledDesk();
    const written: string[] = [];
    const { store } = simulated.tools;
    const watched = {
      ...store,
      write: async (state: Joined) => void written.push(state.interface),
      writeConfig: async (link: string) => void written.push(`${link}.conf`),
    };
    simulated.actual = { ...simulated.actual, routes: [] };
    const tools = { ...simulated.tools, store: watched };
    expect((await passNetwork(tools, 'cpn0', noUpdate, options))?.changes).toHaveLength(1);
    expect(written).toEqual([]);
  });

  it.each([
    ['without an update', noUpdate],
    ['with a map that was refused before', update],
  ])('leaves drift when `mayRepair` forbids the repair, %s', async (_, update) => {
    const simulated = await settledDesk();
    await simulated.tools.store.write({ ...(await simulated.state()), refused: identifyMap(after) });
    simulated.actual = { ...simulated.actual, routes: [] };
    expect(await passNetwork(simulated.tools, 'cpn0', update, { ...options, mayRepair: () => false })).toMatchObject({
      changes: [],
    });
    expect(simulated.steps).toEqual([]);
  });

  it('does nothing once the host left the network', async () => {
    const simulated = await settledDesk();
    await simulated.tools.store.forget('cpn0', []);
    expect(await passNetwork(simulated.tools, 'cpn0', noUpdate, options)).toBeNull();
  });

  it('keeps the tunnel and its key, without peers, when the network no longer lists this host', async () => {
    const simulated = await settledDesk();
    simulated.service.mapReplies = [answerWith(before)];
    const pass = await passNetwork(
      simulated.tools,
      'cpn0',
      { map: { ...before, revision: '"4"', peers: [relay] }, resolved: null },
      options,
    );
    expect(pass?.evaluation?.listed).toBe(false);
    expect(simulated.actual.link).toMatchObject({ up: true, addresses: [{ address: '10.77.0.1' }] });
    expect(simulated.actual.device?.peers).toEqual([]);
    expect(simulated.actual.device?.publicKey).toBe((await simulated.state()).keyPair.publicKey);
  });
});

describe('a newer map that could cut the host off', () => {
  it.each([
    ['answers', answerWith(after)],
    ['refuses', fail(new Refused(401, 'reading', 'no', 'look'))],
    ['answers nonsense', fail(new BadReply('https://x', 'is not JSON', 'look'))],
    ['answers 503', fail(new Unreachable('https://x', '503', { delivered: true, heard: true, retryAfterMs: null }))],
  ])('is kept when the control plane still %s', async (_, answer) => {
    const simulated = await settledDesk();
    simulated.service.mapReplies = [answer];
    await passNetwork(simulated.tools, 'cpn0', update, options);
    expect(routesOf(simulated)).toEqual(['192.168.50.0/24', '192.168.60.0/24']);
    expect((await simulated.state()).membership.map.revision).toBe('"2"');
    expect(await simulated.tools.store.readConfig('cpn0')).toContain('192.168.60.0/24');
  });

  it('is confirmed over a connection that the next long poll uses again', async () => {
    const simulated = await settledDesk();
    simulated.service.mapReplies = [answerWith(after)];
    await passNetwork(simulated.tools, 'cpn0', update, options);
    expect(simulated.service.connectOptions).toEqual({ deadlineMs: 5_000, connection: 'leave' });
  });

  it('is kept when the control plane is gone, and a peer that answered before answers', async () => {
    const simulated = await settledDesk();
    simulated.service.mapReplies = [fail(gone)];
    simulated.reachable.add('10.77.0.2');
    await passNetwork(simulated.tools, 'cpn0', update, options);
    expect((await simulated.state()).membership.map.revision).toBe('"2"');
  });

  it('is kept when the control plane is gone, and a peer behind a firewall makes a new handshake', async () => {
    const simulated = await settledDesk();
    simulated.service.mapReplies = [
      () => {
        simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
        throw gone;
      },
    ];
    await passNetwork(simulated.tools, 'cpn0', update, options);
    expect((await simulated.state()).membership.map.revision).toBe('"2"');
  });

  it('is rolled back when a peer responds only just after the change, over the old route', async () => {
    const simulated = await settledDesk();
    const begun = simulated.seconds;
    simulated.service.mapReplies = [fail(gone)];
    simulated.tools.host.isTcpReachable = async () => simulated.seconds - begun < 0.25;
    await expect(passNetwork(simulated.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(NotConfirmed);
  });

  it('is rolled back although a peer still sends: it may receive nothing from this host', async () => {
    const simulated = await settledDesk();
    let rxBytes = 100;
    simulated.service.mapReplies = [
      () => {
        rxBytes += 148;
        simulated.updatePeer(2, { rxBytes });
        throw gone;
      },
    ];
    await expect(passNetwork(simulated.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(NotConfirmed);
  });

  it('is rolled back when the peers stop responding, and not retried', async () => {
    const simulated = await settledDesk();
    const config = await simulated.tools.store.readConfig('cpn0');
    const { routes, link } = simulated.actual;
    simulated.service.mapReplies = [fail(gone)];
    await expect(passNetwork(simulated.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(NotConfirmed);
    expect(simulated.actual).toMatchObject({ routes, link });
    expect(await simulated.tools.store.readConfig('cpn0')).toBe(config);
    expect(await simulated.state()).toMatchObject({ refused: '"2"', membership: { map: { revision: '"1"' } } });

    simulated.steps.length = 0;
    simulated.service.mapReplies = [answerWith(after)];
    expect(await passNetwork(simulated.tools, 'cpn0', update, options)).toMatchObject({ changes: [] });
    expect(simulated.steps).toEqual([]);
  });

  it('is rolled back when the host refuses a part of it, and retried', async () => {
    const simulated = await settledDesk();
    const { device, routes } = simulated.actual;
    simulated.refusesStep = (step) => step.do === 'configure-link' && step.commands.some((command) => 'add' in command);
    await expect(passNetwork(simulated.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(CommandFailed);
    // What came before the refused step was done, and is undone.
    expect(simulated.steps.map((step) => step.do)).toEqual(['configure-device', 'configure-device']);
    expect(simulated.actual).toMatchObject({ device, routes });
    simulated.refusesStep = () => false;
    simulated.service.mapReplies = [answerWith(after)];
    await passNetwork(simulated.tools, 'cpn0', update, options);
    expect((await simulated.state()).membership.map.revision).toBe('"2"');
  });

  it('that made the host a connector takes all of that back, and the receipt keeps what cannot be', async () => {
    const peers = after.peers.map((each) => (each.id === 1 ? { ...each, type: 'connector' as const } : each));
    const asConnector = { map: { ...after, peers }, resolved: null };
    for (const isStuck of [false, true]) {
      const simulated = await settledDesk();
      const turnedOn = () =>
        Object.entries(simulated.actual.sysctls).flatMap(([key, value]) => (value === '1' ? [key] : []));
      const { firewall, rules } = simulated.actual;
      const [before, { receipt }] = [turnedOn(), await simulated.state()];
      let [opened, noted]: [unknown, Joined['receipt']] = [null, []];
      simulated.service.mapReplies = [
        async () => {
          [opened, noted] = [turnedOn(), (await simulated.state()).receipt];
          simulated.refusesStep = () => isStuck;
          throw gone;
        },
      ];
      const pass = passNetwork(simulated.tools, 'cpn0', asConnector, options);
      await expect(pass).rejects.toBeInstanceOf(isStuck ? CommandFailed : NotConfirmed);
      expect(noted.map(({ made }) => made)).toEqual(expect.arrayContaining(['firewall', 'sysctl']));
      expect(opened).not.toEqual(before);
      if (isStuck) expect((await simulated.state()).receipt).toEqual(noted);
      else {
        expect(simulated.actual).toMatchObject({ firewall, rules });
        expect(turnedOn()).toEqual(before);
        expect((await simulated.state()).receipt).toEqual(receipt);
      }
    }
  });

  it('is tried as soon as it is another one', async () => {
    const simulated = await settledDesk();
    simulated.service.mapReplies = [fail(gone)];
    await expect(passNetwork(simulated.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(NotConfirmed);
    simulated.service.mapReplies = [answerWith(after)];
    await passNetwork(simulated.tools, 'cpn0', { map: { ...after, revision: '"3"' }, resolved: null }, options);
    expect(await simulated.state()).toMatchObject({ refused: null, membership: { map: { revision: '"3"' } } });
  });

  it('is rolled back when the process is stopped meanwhile, and retried by the next one', async () => {
    const simulated = await settledDesk();
    const stop = new AbortController();
    simulated.service.mapReplies = [
      () => {
        stop.abort();
        throw gone;
      },
    ];
    await expect(passNetwork(simulated.tools, 'cpn0', update, { ...options, signal: stop.signal })).rejects.toThrow(
      'before the daemon stopped; the daemon retries when it starts again',
    );
    expect(routesOf(simulated)).toEqual(['192.168.50.0/24']);
    expect((await simulated.state()).refused).toBeNull();
  });

  it('is on disk only once it is confirmed, so that a crash before goes back to what was known', async () => {
    const simulated = await settledDesk();
    const seen: unknown[] = [];
    simulated.service.mapReplies = [
      async () => {
        seen.push((await simulated.state()).membership.map.revision, routesOf(simulated).length);
        return { map: null, waited: false };
      },
    ];
    await passNetwork(simulated.tools, 'cpn0', update, options);
    expect(seen).toEqual(['"1"', 2]);
  });
});

describe('a peer whose endpoint changed in the map', () => {
  const learned = { host: parseAddress('198.51.100.9'), port: 4000 };
  const at = (endpoint: string, revision: string) =>
    mapAt(revision, [peer(2, { type: 'connector', endpoint: parseEndpoint(endpoint) })]);
  const moved = at('203.0.113.77:51820', '"2"');
  const endpointOf = (simulated: SimulatedHost) =>
    formatEndpoint(simulated.actual.device?.peers[0]?.endpoint ?? learned);

  /** A host that heard the connector just now, from elsewhere than the map says. */
  async function roamedHost(): Promise<{ simulated: SimulatedHost; triggered: string[] }> {
    const simulated = await settledDesk();
    simulated.updatePeer(2, { endpoint: learned });
    simulated.service.mapReplies = [answerWith(moved)];
    const triggered: string[] = [];
    simulated.onHandshakeTrigger = (address) => void triggered.push(address);
    return { simulated, triggered };
  }

  it('is sent to there at once, and keeps what is learned after that', async () => {
    const { simulated, triggered } = await roamedHost();
    expect(await passNetwork(simulated.tools, 'cpn0', noUpdate, options)).toMatchObject({ changes: [] });
    expect(endpointOf(simulated)).toBe('198.51.100.9:4000');
    const pass = await passNetwork(simulated.tools, 'cpn0', { map: moved, resolved: null }, options);
    expect(pass?.changes).toMatchObject([{ kind: 'file' }, { kind: 'peer', reason: 'endpoint differ' }]);
    expect(endpointOf(simulated)).toBe('203.0.113.77:51820');
    expect(triggered).toEqual(['10.77.0.2']);
    simulated.updatePeer(2, { endpoint: learned });
    expect(await passNetwork(simulated.tools, 'cpn0', noUpdate, options)).toMatchObject({ changes: [] });
    expect(endpointOf(simulated)).toBe('198.51.100.9:4000');
  });

  it('keeps its endpoint in the next process when the change was not applied yet', async () => {
    const { simulated } = await roamedHost();
    const state = await simulated.state();
    await simulated.tools.store.write({ ...state, membership: { ...state.membership, map: moved } });
    await bringUp(simulated.tools);
    expect(endpointOf(simulated)).toBe('203.0.113.77:51820');
  });

  it('gets its endpoint of the map back when the change is rolled back', async () => {
    const { simulated } = await roamedHost();
    simulated.service.mapReplies = [fail(gone)];
    const update = { map: moved, resolved: null };
    await expect(passNetwork(simulated.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(NotConfirmed);
    expect(endpointOf(simulated)).toBe('203.0.113.2:51820');
  });

  it('keeps its last endpoint when only the addresses of its name changed', async () => {
    const { simulated } = await roamedHost();
    const named = at('edge.example:51820', '"3"');
    const place = (host: string) => ({ 'edge.example': [parseAddress(host), parseAddress('203.0.113.2')] });
    await passNetwork(simulated.tools, 'cpn0', { map: named, resolved: place('203.0.113.2') }, options);
    await passNetwork(simulated.tools, 'cpn0', { map: null, resolved: place('203.0.113.78') }, options);
    expect(endpointOf(simulated)).toBe('198.51.100.9:4000');
    expect(await simulated.tools.store.readConfig('cpn0')).toContain('Endpoint = 203.0.113.78:51820');
    simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) - 136 });
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(endpointOf(simulated)).toBe('203.0.113.78:51820');
  });
});

describe('a change that takes away the network itself', () => {
  const others = [relay, ...[3, 4, 5].map((number) => peer(number, { endpoint: dialled(number) }))];
  const known = mapAt('"1"', others);
  /** Keeps only the relay of the four peers that this host dials. */
  const starred = mapAt('"2"', [relay, peer(3), peer(4), peer(5)]);
  /** A LAN of this host that overlaps the range of the network. */
  const connected = [{ prefix: parsePrefix('10.77.0.128/25'), link: 'eth1' }];
  const ranged = { address: '10.77.0.1', length: 24 };

  /** A host with a recent handshake with the relay, or with no handshake. */
  async function crowdedDesk(hasHandshake = true): Promise<SimulatedHost> {
    const simulated = await SimulatedHost.with(joinedTo(known));
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    if (hasHandshake)
      simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) - 10 });
    simulated.service.mapReplies = [answerWith(known)];
    simulated.onHandshakeTrigger = () => {};
    return simulated;
  }

  const drift = (simulated: SimulatedHost) => {
    simulated.actual = { ...simulated.actual, underlay: { ...simulated.actual.underlay, connected } };
  };
  /** The tunnel without the counters of WireGuard. */
  const hostOf = ({ actual: { link, device, routes } }: SimulatedHost) => {
    const peers = device?.peers.map(({ publicKey, endpoint, allowedIps }) => ({ publicKey, endpoint, allowedIps }));
    return { link, routes, peers: peers?.toSorted((a, b) => (a.publicKey < b.publicKey ? -1 : 1)) };
  };
  const to = (map: NetworkMap): StateUpdate => ({ map, resolved: null });

  it('is rolled back when no retained peer responds, even if the control plane does', async () => {
    const simulated = await crowdedDesk();
    const [before, config] = [hostOf(simulated), await simulated.tools.store.readConfig('cpn0')];
    simulated.service.mapReplies = [answerWith(starred)];
    await expect(passNetwork(simulated.tools, 'cpn0', to(starred), options)).rejects.toThrow(
      'cpn0 was rolled back: with revision "2" it loses 3 of 4 peers, and no retained peer that had a handshake responded within 20 s; not retried until the network changes',
    );
    expect(hostOf(simulated)).toEqual(before);
    expect(await simulated.tools.store.readConfig('cpn0')).toBe(config);
    expect(await simulated.state()).toMatchObject({ refused: '"2"', membership: { map: { revision: '"1"' } } });
    expect(simulated.service.mapRequests).toEqual([]);
  });

  it('is kept when a retained peer responds, or when none did before and the control plane does', async () => {
    for (const hasHandshake of [true, false]) {
      const simulated = await crowdedDesk(hasHandshake);
      simulated.service.mapReplies = [hasHandshake ? fail(gone) : answerWith(starred)];
      if (hasHandshake) simulated.reachable.add('10.77.0.2');
      await passNetwork(simulated.tools, 'cpn0', to(starred), options);
      expect((await simulated.state()).membership.map.revision).toBe('"2"');
    }
  });

  it('is kept when a retained peer completes only a handshake, as behind a firewall', async () => {
    const simulated = await crowdedDesk();
    simulated.service.mapReplies = [answerWith(starred)];
    simulated.onHandshakeTrigger = () => {
      const isRenewed = simulated.steps.some((step) => step.do === 'renew-peers');
      if (isRenewed) simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
    };
    await passNetwork(simulated.tools, 'cpn0', to(starred), options);
    expect((await simulated.state()).membership.map.revision).toBe('"2"');
  });

  it('is rolled back to the config file when drift caused it, and does not change the state', async () => {
    const simulated = await crowdedDesk();
    const [before, state] = [hostOf(simulated), await simulated.state()];
    drift(simulated);
    await expect(passNetwork(simulated.tools, 'cpn0', noUpdate, options)).rejects.toThrow(
      "with the host's current underlay it loses the network's range 10.77.0.0/24, and no retained peer",
    );
    expect(simulated.actual.link?.addresses).toEqual([ranged]);
    expect(hostOf(simulated)).toEqual(before);
    expect(await simulated.state()).toEqual({ ...state, receipt: expect.anything() });
    simulated.reachable.add('10.77.0.2');
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(simulated.actual.link?.addresses).toEqual([{ ...ranged, length: 32 }]);
    expect(await simulated.tools.store.readConfig('cpn0')).toContain('Address = 10.77.0.1/32');
  });

  it('is rolled back by every command that brings a tunnel up', async () => {
    const simulated = await crowdedDesk();
    drift(simulated);
    expect(await bringUp(simulated.tools)).toMatchObject([{ failure: { name: 'NotConfirmed' } }]);
    expect(simulated.actual.link?.addresses).toEqual([ranged]);
    simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
    await expect(rotateKey(simulated.tools, 'cpn0', options)).rejects.toBeInstanceOf(NotConfirmed);
    expect(simulated.actual.link?.addresses).toEqual([ranged]);
    expect(simulated.service.registeredKeys).toEqual([]);
  });

  it('is kept, and logged, when no peer that could confirm it responded before', async () => {
    const simulated = await crowdedDesk(false);
    simulated.service.mapReplies = [fail(gone)];
    drift(simulated);
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(simulated.actual.link?.addresses).toEqual([{ ...ranged, length: 32 }]);
    expect(simulated.logged).toContainEqual({
      level: 'warn',
      facts: { interface: 'cpn0', loss: "the network's range 10.77.0.0/24" },
      message: 'a change may cut this host off, and nothing can confirm it',
    });
  });

  it('is no peer that the service lists no more, once it said so twice', async () => {
    const simulated = await crowdedDesk();
    const before = hostOf(simulated);
    const fewer = mapAt('"2"', [relay]);
    simulated.service.mapReplies = [answerWith(fewer)];
    expect(await reconcileNetworks(simulated.tools)).toMatchObject([{ failure: { name: 'NotConfirmed' } }]);
    expect(hostOf(simulated)).toEqual(before);
    expect(await simulated.state()).toMatchObject({ refused: null, membership: { map: { revision: '"1"' } } });
    expect(await reconcileNetworks(simulated.tools)).toMatchObject([
      { failure: null, unsynced: { name: 'Unconfirmed' } },
    ]);
    expect(hostOf(simulated)).toEqual(before);
    simulated.seconds += 31;
    expect(await reconcileNetworks(simulated.tools)).toMatchObject([{ failure: null, unsynced: null }]);
    expect(simulated.actual.device?.peers.map(({ publicKey }) => publicKey)).toEqual([relay.publicKey]);
  });

  it('is no peer that the service states to be gone, and the control plane confirms the rest', async () => {
    const simulated = await crowdedDesk();
    simulated.service.mapReplies = [answerRemoving(mapAt('"2"', [relay]), [3, 4, 5])];
    expect(await reconcileNetworks(simulated.tools)).toMatchObject([{ failure: null, unsynced: null }]);
    expect(simulated.actual.device?.peers.map(({ publicKey }) => publicKey)).toEqual([relay.publicKey]);
  });

  it('is a peer that the map merely lacks, though another one is stated to be gone', async () => {
    const simulated = await crowdedDesk();
    simulated.service.mapReplies = [answerRemoving(mapAt('"2"', [relay]), [3])];
    expect(await reconcileNetworks(simulated.tools)).toMatchObject([{ failure: { name: 'NotConfirmed' } }]);
    expect(simulated.actual.device?.peers).toHaveLength(4);
  });

  it('is confirmed at once when a retained peer responds, even if the map drops most peers', async () => {
    const simulated = await crowdedDesk();
    simulated.reachable.add('10.77.0.2');
    await passNetwork(simulated.tools, 'cpn0', to(mapAt('"2"', [relay])), options);
    expect(simulated.actual.device?.peers.map(({ publicKey }) => publicKey)).toEqual([relay.publicKey]);
  });
});

it('a newer map that only adds a peer needs no confirmation', async () => {
  const simulated = await settledDesk();
  const more = mapAt('"2"', [relay, peer(3, { endpoint: dialled(3) })]);
  await passNetwork(simulated.tools, 'cpn0', { map: more, resolved: null }, options);
  expect(simulated.service.mapRequests).toEqual([]);
  expect((await simulated.state()).membership.map.revision).toBe('"2"');
});

describe('cpn up', () => {
  it('writes once before the first step: that the network is up, and what is about to be made', async () => {
    const simulated = await SimulatedHost.with({ ...joinedTo(before), enabled: false });
    const { store } = simulated.tools;
    const written: { readonly state: Joined; readonly steps: number }[] = [];
    const counting = {
      ...store,
      write: (state: Joined) => {
        written.push({ state, steps: simulated.steps.length });
        return store.write(state);
      },
    };
    await bringUp({ ...simulated.tools, store: counting });
    expect(written.filter(({ steps }) => steps === 0)).toMatchObject([
      { state: { enabled: true, receipt: expect.arrayContaining([{ made: 'interface', link: 'cpn0' }]) } },
    ]);
    written.length = 0;
    await bringUp({ ...simulated.tools, store: counting });
    expect(written).toEqual([]);
  });
});

describe('a peer that expires', () => {
  const at = Date.parse('2031-01-01T00:00:00Z');
  const lost = peer(2, { endpoint: dialled(2), expiresAt: at });
  /** A network of two, and the clock of its service so many milliseconds from the expiry. */
  async function pairDesk(left: number): Promise<SimulatedHost> {
    const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [lost])));
    const clock = { service: at - left, uptime: simulated.tools.uptime() };
    const sync = { mode: 'push', lastSuccess: null, error: null, refused: null, clock } as const;
    await simulated.tools.store.amendNotes('cpn0', { sync });
    simulated.service.mapReplies = [fail(gone)];
    return simulated;
  }
  const peersOf = ({ actual }: SimulatedHost) => actual.device?.peers.length;

  it('is dropped by a pass after that, without the control plane, and though it was the only one', async () => {
    const simulated = await pairDesk(5_000);
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(peersOf(simulated)).toBe(1);
    simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
    simulated.seconds += 6;
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    expect(peersOf(simulated)).toBe(0);
    expect((await simulated.state()).membership.map.peers).toHaveLength(2);
  });

  it('stays out where nothing was received since boot, and the wall clock is at its beginning', async () => {
    for (const [confirmed, count] of [
      [at - 1, 1],
      [at, 0],
    ] as const) {
      const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [lost], { maxAge: 3600 }), { confirmed }));
      simulated.service.mapReplies = [fail(gone)];
      await passNetwork({ ...simulated.tools, now: () => new Date(0) }, 'cpn0', noUpdate, options);
      expect(peersOf(simulated)).toBe(count);
    }
  });

  it('stays until then, though the wall clock of the host is years ahead', async () => {
    const simulated = await pairDesk(60_000);
    const tools = { ...simulated.tools, now: () => new Date('2040-01-01T00:00:00Z') };
    await passNetwork(tools, 'cpn0', noUpdate, options);
    expect(peersOf(simulated)).toBe(1);
  });
});
