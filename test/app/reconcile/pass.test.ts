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
import { answerRemoving, answerWith, Desk, fail, joinedTo, mapAt } from '../desk.ts';

const relay = peer(2, { type: 'connector', endpoint: dialled(2) });
const before = mapAt('"1"', [relay]);
/** Moves a route onto this host, and so may cut it off. */
const after = mapAt('"2"', [relay], { routes: [parsePrefix('192.168.50.0/24'), parsePrefix('192.168.60.0/24')] });
const update = { map: after, resolved: null };
const options = { withinMs: 20_000 };
const gone = new Unreachable('https://203.0.113.99', 'gone', { delivered: false, heard: false, retryAfterMs: null });

/** A host that is as its state says, with one peer that answered just now. */
async function settledDesk(): Promise<Desk> {
  const desk = await Desk.with(joinedTo(before));
  await passNetwork(desk.tools, 'cpn0', noUpdate, options);
  desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) - 10, rxBytes: 100, txBytes: 100 });
  desk.steps.length = 0;
  desk.observations = 0;
  desk.deviceLooks = 0;
  return desk;
}

const routesOf = (desk: Desk) => desk.actual.routes.map((route) => route.prefix);
const throwsOf = (desk: Desk) => desk.actual.throwRoutes?.map((route) => route.prefix);

describe('a pass', () => {
  it('without drift observes once, and changes and saves nothing', async () => {
    const desk = await settledDesk();
    const pass = await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(pass).toMatchObject({ changes: [], isDrift: true });
    expect({ observations: desk.observations, steps: desk.steps, asked: desk.asked }).toEqual({
      observations: 1,
      steps: [],
      asked: [],
    });
  });

  it('with an update observes once before its changes, under the lock, and once after them what they concern', async () => {
    const desk = await settledDesk();
    const { store } = desk.tools;
    const locked: number[] = [];
    const lock: typeof store.lock = (work) => {
      locked.push(desk.observations);
      return store.lock(work);
    };
    const newcomer = mapAt('"2"', [relay, peer(3, { endpoint: dialled(3) })]);
    const pass = await passNetwork(
      { ...desk.tools, store: { ...store, lock } },
      'cpn0',
      { map: newcomer, resolved: null },
      options,
    );
    expect(pass?.changes.map(({ kind }) => kind)).toEqual(['file', 'peer']);
    const { observations, deviceLooks } = desk;
    expect({ observations, deviceLooks, locked }).toEqual({ observations: 1, deviceLooks: 1, locked: [0] });
  });

  it('observes all again after changes of more than the peers', async () => {
    const desk = await settledDesk();
    desk.actual = { ...desk.actual, routes: [] };
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    const { observations, deviceLooks } = desk;
    // Without the lock, under it, and after the change.
    expect({ observations, deviceLooks }).toEqual({ observations: 3, deviceLooks: 0 });
  });

  it('fails where WireGuard has not taken over a peer', async () => {
    const desk = await settledDesk();
    const { apply } = desk.tools.host;
    desk.tools.host.apply = async (step) => {
      if (step.do !== 'configure-device') await apply(step);
    };
    const map = mapAt('"2"', [relay, peer(3, { endpoint: dialled(3) })]);
    const work = passNetwork(desk.tools, 'cpn0', { map, resolved: null }, options);
    await expect(work).rejects.toMatchObject({ name: 'NotConverged' });
  });

  it('repairs drift', async () => {
    const desk = await settledDesk();
    desk.actual = { ...desk.actual, routes: [] };
    const pass = await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(pass).toMatchObject({ isDrift: true, changes: [{ action: 'add', kind: 'route' }] });
    expect(routesOf(desk)).toEqual(['192.168.50.0/24']);
  });

  it('restores the route to the range, though a session comes through it', async () => {
    const desk = await settledDesk();
    const sshClients = [{ address: parseAddress('10.77.0.9'), local: null }];
    desk.sshClients = sshClients;
    desk.actual = { ...desk.actual, onLink: [] };
    const pass = await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(pass?.changes).toMatchObject([{ action: 'add', kind: 'route', target: '10.77.0.0/24' }]);
    expect(desk.actual.onLink).toEqual(['10.77.0.0/24']);
    expect(desk.actual.link?.addresses).toMatchObject([{ length: 24 }]);
  });

  it('restores a route with the sessions that came by it, though another program took it away', async () => {
    const desk = await settledDesk();
    desk.sshClients = [{ address: parseAddress('192.168.50.7'), local: parseAddress('203.0.113.22') }];
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    desk.actual = { ...desk.actual, routes: [] };
    const pass = await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(pass?.changes).toMatchObject([{ action: 'add', kind: 'route', target: '192.168.50.0/24' }]);
    expect(routesOf(desk)).toEqual(['192.168.50.0/24']);
  });

  it('does not where the session may have begun while the tunnel was down', async () => {
    const desk = await settledDesk();
    desk.sshClients = [{ address: parseAddress('192.168.50.7'), local: parseAddress('203.0.113.22') }];
    await desk.tools.store.write({ ...(await desk.state()), enabled: false });
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    desk.actual = { ...desk.actual, routes: [] };
    await desk.tools.store.write({ ...(await desk.state()), enabled: true });
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(throwsOf(desk)).toEqual(['192.168.50.7/32']);
  });

  it('keeps outside a session that a longer route of another program hides from the tunnel', async () => {
    const desk = await settledDesk();
    desk.sshClients = [{ address: parseAddress('192.168.50.7'), local: parseAddress('203.0.113.22') }];
    const routed = [{ prefix: parsePrefix('192.168.50.0/25'), link: 'eth1' }];
    desk.actual = { ...desk.actual, underlay: { ...desk.actual.underlay, routed } };
    const pass = await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(pass?.evaluation?.desired.report).toMatchObject([
      { state: 'taken', reason: '192.168.50.7 stays outside: an SSH client' },
    ]);
    expect(throwsOf(desk)).toEqual(['192.168.50.7/32']);
  });

  it('reads the SSH sessions only where it adds a route, and keeps the client of a session outside of it while the session lasts', async () => {
    const desk = await settledDesk();
    desk.sshClients = [{ address: parseAddress('192.168.60.7'), local: null }];
    desk.sessionReads = 0;
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(desk.sessionReads).toBe(0);
    desk.answers = [answerWith(after)];
    const pass = await passNetwork(desk.tools, 'cpn0', update, options);
    expect(pass?.evaluation?.desired.report).toContainEqual(
      expect.objectContaining({ prefix: '192.168.60.0/24', reason: '192.168.60.7 stays outside: an SSH client' }),
    );
    expect(routesOf(desk)).toEqual(['192.168.50.0/24', '192.168.60.0/24']);
    expect(throwsOf(desk)).toEqual(['192.168.60.7/32']);
    expect((await desk.state()).keptOutside).toEqual([{ address: '192.168.60.7', what: 'an SSH client' }]);
    const again = await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect([again?.changes, throwsOf(desk)]).toEqual([[], ['192.168.60.7/32']]);
    desk.sshClients = [];
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect([throwsOf(desk), (await desk.state()).keptOutside]).toEqual([[], []]);
    desk.sessionReads = 0;
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(desk.sessionReads).toBe(0);
  });

  it('that repairs drift leaves the files as they are', async () => {
    const desk = await settledDesk();
    const written: string[] = [];
    const { store } = desk.tools;
    const watched = {
      ...store,
      write: async (state: Joined) => void written.push(state.interface),
      writeConfig: async (link: string) => void written.push(`${link}.conf`),
    };
    desk.actual = { ...desk.actual, routes: [] };
    const tools = { ...desk.tools, store: watched };
    expect((await passNetwork(tools, 'cpn0', noUpdate, options))?.changes).toHaveLength(1);
    expect(written).toEqual([]);
  });

  it.each([
    ['without an update', noUpdate],
    ['with a map that was refused before', update],
  ])('leaves drift when `mayRepair` forbids the repair, %s', async (_, update) => {
    const desk = await settledDesk();
    await desk.tools.store.write({ ...(await desk.state()), refused: identifyMap(after) });
    desk.actual = { ...desk.actual, routes: [] };
    expect(await passNetwork(desk.tools, 'cpn0', update, { ...options, mayRepair: () => false })).toMatchObject({
      changes: [],
    });
    expect(desk.steps).toEqual([]);
  });

  it('does nothing once the host left the network', async () => {
    const desk = await settledDesk();
    await desk.tools.store.forget('cpn0', []);
    expect(await passNetwork(desk.tools, 'cpn0', noUpdate, options)).toBeNull();
  });

  it('keeps the tunnel and its key, without peers, when the network no longer lists this host', async () => {
    const desk = await settledDesk();
    desk.answers = [answerWith(before)];
    const pass = await passNetwork(
      desk.tools,
      'cpn0',
      { map: { ...before, revision: '"4"', peers: [relay] }, resolved: null },
      options,
    );
    expect(pass?.evaluation?.listed).toBe(false);
    expect(desk.actual.link).toMatchObject({ up: true, addresses: [{ address: '10.77.0.1' }] });
    expect(desk.actual.device?.peers).toEqual([]);
    expect(desk.actual.device?.publicKey).toBe((await desk.state()).keyPair.publicKey);
  });
});

describe('a newer map that could cut the host off', () => {
  it.each([
    ['answers', answerWith(after)],
    ['refuses', fail(new Refused(401, 'reading', 'no', 'look'))],
    ['answers nonsense', fail(new BadReply('https://x', 'is not JSON', 'look'))],
    ['answers 503', fail(new Unreachable('https://x', '503', { delivered: true, heard: true, retryAfterMs: null }))],
  ])('is kept when the control plane still %s', async (_, answer) => {
    const desk = await settledDesk();
    desk.answers = [answer];
    await passNetwork(desk.tools, 'cpn0', update, options);
    expect(routesOf(desk)).toEqual(['192.168.50.0/24', '192.168.60.0/24']);
    expect((await desk.state()).membership.map.revision).toBe('"2"');
    expect(await desk.tools.store.readConfig('cpn0')).toContain('192.168.60.0/24');
  });

  it('is confirmed over a connection that the next long poll uses again', async () => {
    const desk = await settledDesk();
    desk.answers = [answerWith(after)];
    await passNetwork(desk.tools, 'cpn0', update, options);
    expect(desk.patience).toEqual({ deadlineMs: 5_000, connection: 'leave' });
  });

  it('is kept when the control plane is gone, and a peer that answered before answers', async () => {
    const desk = await settledDesk();
    desk.answers = [fail(gone)];
    desk.alive.add('10.77.0.2');
    await passNetwork(desk.tools, 'cpn0', update, options);
    expect((await desk.state()).membership.map.revision).toBe('"2"');
  });

  it('is kept when the control plane is gone, and a peer behind a firewall makes a new handshake', async () => {
    const desk = await settledDesk();
    desk.answers = [
      () => {
        desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
        throw gone;
      },
    ];
    await passNetwork(desk.tools, 'cpn0', update, options);
    expect((await desk.state()).membership.map.revision).toBe('"2"');
  });

  it('is rolled back when a peer responds only just after the change, over the old route', async () => {
    const desk = await settledDesk();
    const begun = desk.seconds;
    desk.answers = [fail(gone)];
    desk.tools.host.isTcpReachable = async () => desk.seconds - begun < 0.25;
    await expect(passNetwork(desk.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(NotConfirmed);
  });

  it('is rolled back although a peer still sends: it may receive nothing from this host', async () => {
    const desk = await settledDesk();
    let rxBytes = 100;
    desk.answers = [
      () => {
        rxBytes += 148;
        desk.touch(2, { rxBytes });
        throw gone;
      },
    ];
    await expect(passNetwork(desk.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(NotConfirmed);
  });

  it('is rolled back when the peers stop responding, and not retried', async () => {
    const desk = await settledDesk();
    const config = await desk.tools.store.readConfig('cpn0');
    const { routes, link } = desk.actual;
    desk.answers = [fail(gone)];
    await expect(passNetwork(desk.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(NotConfirmed);
    expect(desk.actual).toMatchObject({ routes, link });
    expect(await desk.tools.store.readConfig('cpn0')).toBe(config);
    expect(await desk.state()).toMatchObject({ refused: '"2"', membership: { map: { revision: '"1"' } } });

    desk.steps.length = 0;
    desk.answers = [answerWith(after)];
    expect(await passNetwork(desk.tools, 'cpn0', update, options)).toMatchObject({ changes: [] });
    expect(desk.steps).toEqual([]);
  });

  it('is rolled back when the host refuses a part of it, and retried', async () => {
    const desk = await settledDesk();
    const { device, routes } = desk.actual;
    desk.refuses = (step) => step.do === 'configure-link' && step.commands.some((command) => 'add' in command);
    await expect(passNetwork(desk.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(CommandFailed);
    // What came before the refused step was done, and is undone.
    expect(desk.steps.map((step) => step.do)).toEqual(['configure-device', 'configure-device']);
    expect(desk.actual).toMatchObject({ device, routes });
    desk.refuses = () => false;
    desk.answers = [answerWith(after)];
    await passNetwork(desk.tools, 'cpn0', update, options);
    expect((await desk.state()).membership.map.revision).toBe('"2"');
  });

  it('is tried as soon as it is another one', async () => {
    const desk = await settledDesk();
    desk.answers = [fail(gone)];
    await expect(passNetwork(desk.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(NotConfirmed);
    desk.answers = [answerWith(after)];
    await passNetwork(desk.tools, 'cpn0', { map: { ...after, revision: '"3"' }, resolved: null }, options);
    expect(await desk.state()).toMatchObject({ refused: null, membership: { map: { revision: '"3"' } } });
  });

  it('is rolled back when the process is stopped meanwhile, and retried by the next one', async () => {
    const desk = await settledDesk();
    const stop = new AbortController();
    desk.answers = [
      () => {
        stop.abort();
        throw gone;
      },
    ];
    await expect(passNetwork(desk.tools, 'cpn0', update, { ...options, signal: stop.signal })).rejects.toThrow(
      'before the daemon stopped; its next start tries again',
    );
    expect(routesOf(desk)).toEqual(['192.168.50.0/24']);
    expect((await desk.state()).refused).toBeNull();
  });

  it('is on disk only once it is confirmed, so that a crash before goes back to what was known', async () => {
    const desk = await settledDesk();
    const seen: unknown[] = [];
    desk.answers = [
      async () => {
        seen.push((await desk.state()).membership.map.revision, routesOf(desk).length);
        return { map: null, waited: false };
      },
    ];
    await passNetwork(desk.tools, 'cpn0', update, options);
    expect(seen).toEqual(['"1"', 2]);
  });
});

describe('a peer whose endpoint changed in the map', () => {
  const learned = { host: parseAddress('198.51.100.9'), port: 4000 };
  const at = (endpoint: string, revision: string) =>
    mapAt(revision, [peer(2, { type: 'connector', endpoint: parseEndpoint(endpoint) })]);
  const moved = at('203.0.113.77:51820', '"2"');
  const endpointOf = (desk: Desk) => formatEndpoint(desk.actual.device?.peers[0]?.endpoint ?? learned);

  /** A host that heard the connector just now, from elsewhere than the map says. */
  async function roamedDesk(): Promise<{ desk: Desk; nudged: string[] }> {
    const desk = await settledDesk();
    desk.touch(2, { endpoint: learned });
    desk.answers = [answerWith(moved)];
    const nudged: string[] = [];
    desk.onHandshakeTrigger = (address) => void nudged.push(address);
    return { desk, nudged };
  }

  it('is sent to there at once, and keeps what is learned after that', async () => {
    const { desk, nudged } = await roamedDesk();
    expect(await passNetwork(desk.tools, 'cpn0', noUpdate, options)).toMatchObject({ changes: [] });
    expect(endpointOf(desk)).toBe('198.51.100.9:4000');
    const pass = await passNetwork(desk.tools, 'cpn0', { map: moved, resolved: null }, options);
    expect(pass?.changes).toMatchObject([{ kind: 'file' }, { kind: 'peer', reason: 'endpoint differ' }]);
    expect(endpointOf(desk)).toBe('203.0.113.77:51820');
    expect(nudged).toEqual(['10.77.0.2']);
    desk.touch(2, { endpoint: learned });
    expect(await passNetwork(desk.tools, 'cpn0', noUpdate, options)).toMatchObject({ changes: [] });
    expect(endpointOf(desk)).toBe('198.51.100.9:4000');
  });

  it('keeps its endpoint in the next process when the change was not applied yet', async () => {
    const { desk } = await roamedDesk();
    const state = await desk.state();
    await desk.tools.store.write({ ...state, membership: { ...state.membership, map: moved } });
    await bringUp(desk.tools);
    expect(endpointOf(desk)).toBe('203.0.113.77:51820');
  });

  it('gets its endpoint of the map back when the change is rolled back', async () => {
    const { desk } = await roamedDesk();
    desk.answers = [fail(gone)];
    const update = { map: moved, resolved: null };
    await expect(passNetwork(desk.tools, 'cpn0', update, options)).rejects.toBeInstanceOf(NotConfirmed);
    expect(endpointOf(desk)).toBe('203.0.113.2:51820');
  });

  it('keeps its last endpoint when only the addresses of its name changed', async () => {
    const { desk } = await roamedDesk();
    const named = at('edge.example:51820', '"3"');
    const place = (host: string) => ({ 'edge.example': [parseAddress(host), parseAddress('203.0.113.2')] });
    await passNetwork(desk.tools, 'cpn0', { map: named, resolved: place('203.0.113.2') }, options);
    await passNetwork(desk.tools, 'cpn0', { map: null, resolved: place('203.0.113.78') }, options);
    expect(endpointOf(desk)).toBe('198.51.100.9:4000');
    expect(await desk.tools.store.readConfig('cpn0')).toContain('Endpoint = 203.0.113.78:51820');
    desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) - 136 });
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(endpointOf(desk)).toBe('203.0.113.78:51820');
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
  async function crowdedDesk(hasHandshake = true): Promise<Desk> {
    const desk = await Desk.with(joinedTo(known));
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    if (hasHandshake) desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) - 10 });
    desk.answers = [answerWith(known)];
    desk.onHandshakeTrigger = () => {};
    return desk;
  }

  const drift = (desk: Desk) => {
    desk.actual = { ...desk.actual, underlay: { ...desk.actual.underlay, connected } };
  };
  /** The tunnel without the counters of WireGuard. */
  const hostOf = ({ actual: { link, device, routes } }: Desk) => {
    const peers = device?.peers.map(({ publicKey, endpoint, allowedIps }) => ({ publicKey, endpoint, allowedIps }));
    return { link, routes, peers: peers?.toSorted((a, b) => (a.publicKey < b.publicKey ? -1 : 1)) };
  };
  const to = (map: NetworkMap): StateUpdate => ({ map, resolved: null });

  it('is rolled back when no retained peer responds, even if the control plane does', async () => {
    const desk = await crowdedDesk();
    const [before, config] = [hostOf(desk), await desk.tools.store.readConfig('cpn0')];
    desk.answers = [answerWith(starred)];
    await expect(passNetwork(desk.tools, 'cpn0', to(starred), options)).rejects.toThrow(
      'cpn0 was rolled back: with revision "2" it loses 3 of 4 peers, and no retained peer that had a handshake responded within 20 s; not retried until the network changes',
    );
    expect(hostOf(desk)).toEqual(before);
    expect(await desk.tools.store.readConfig('cpn0')).toBe(config);
    expect(await desk.state()).toMatchObject({ refused: '"2"', membership: { map: { revision: '"1"' } } });
    expect(desk.asked).toEqual([]);
  });

  it('is kept when a retained peer responds, or when none did before and the control plane does', async () => {
    for (const hasHandshake of [true, false]) {
      const desk = await crowdedDesk(hasHandshake);
      desk.answers = [hasHandshake ? fail(gone) : answerWith(starred)];
      if (hasHandshake) desk.alive.add('10.77.0.2');
      await passNetwork(desk.tools, 'cpn0', to(starred), options);
      expect((await desk.state()).membership.map.revision).toBe('"2"');
    }
  });

  it('is kept when a retained peer completes only a handshake, as behind a firewall', async () => {
    const desk = await crowdedDesk();
    desk.answers = [answerWith(starred)];
    desk.onHandshakeTrigger = () => {
      const isRenewed = desk.steps.some((step) => step.do === 'renew-peers');
      if (isRenewed) desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
    };
    await passNetwork(desk.tools, 'cpn0', to(starred), options);
    expect((await desk.state()).membership.map.revision).toBe('"2"');
  });

  it('is rolled back to the config file when drift caused it, and does not change the state', async () => {
    const desk = await crowdedDesk();
    const [before, state] = [hostOf(desk), await desk.state()];
    drift(desk);
    await expect(passNetwork(desk.tools, 'cpn0', noUpdate, options)).rejects.toThrow(
      "with the host's current underlay it loses the network's range 10.77.0.0/24, and no retained peer",
    );
    expect(desk.actual.link?.addresses).toEqual([ranged]);
    expect(hostOf(desk)).toEqual(before);
    expect(await desk.state()).toEqual({ ...state, receipt: expect.anything() });
    desk.alive.add('10.77.0.2');
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(desk.actual.link?.addresses).toEqual([{ ...ranged, length: 32 }]);
    expect(await desk.tools.store.readConfig('cpn0')).toContain('Address = 10.77.0.1/32');
  });

  it('is rolled back by every command that brings a tunnel up', async () => {
    const desk = await crowdedDesk();
    drift(desk);
    expect(await bringUp(desk.tools)).toMatchObject([{ failure: { name: 'NotConfirmed' } }]);
    expect(desk.actual.link?.addresses).toEqual([ranged]);
    desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
    await expect(rotateKey(desk.tools, 'cpn0', options)).rejects.toBeInstanceOf(NotConfirmed);
    expect(desk.actual.link?.addresses).toEqual([ranged]);
    expect(desk.registered).toEqual([]);
  });

  it('is kept, and logged, when no peer that could confirm it responded before', async () => {
    const desk = await crowdedDesk(false);
    desk.answers = [fail(gone)];
    drift(desk);
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(desk.actual.link?.addresses).toEqual([{ ...ranged, length: 32 }]);
    expect(desk.logged).toContainEqual({
      level: 'warn',
      facts: { interface: 'cpn0', loss: "the network's range 10.77.0.0/24" },
      message: 'a change may cut this host off, and nothing can confirm it',
    });
  });

  it('is no peer that the service lists no more, once it said so twice', async () => {
    const desk = await crowdedDesk();
    const before = hostOf(desk);
    const fewer = mapAt('"2"', [relay]);
    desk.answers = [answerWith(fewer)];
    expect(await reconcileNetworks(desk.tools)).toMatchObject([{ failure: { name: 'NotConfirmed' } }]);
    expect(hostOf(desk)).toEqual(before);
    expect(await desk.state()).toMatchObject({ refused: null, membership: { map: { revision: '"1"' } } });
    expect(await reconcileNetworks(desk.tools)).toMatchObject([{ failure: null, unsynced: { name: 'Unconfirmed' } }]);
    expect(hostOf(desk)).toEqual(before);
    desk.seconds += 31;
    expect(await reconcileNetworks(desk.tools)).toMatchObject([{ failure: null, unsynced: null }]);
    expect(desk.actual.device?.peers.map(({ publicKey }) => publicKey)).toEqual([relay.publicKey]);
  });

  it('is no peer that the service states to be gone, and the control plane confirms the rest', async () => {
    const desk = await crowdedDesk();
    desk.answers = [answerRemoving(mapAt('"2"', [relay]), [3, 4, 5])];
    expect(await reconcileNetworks(desk.tools)).toMatchObject([{ failure: null, unsynced: null }]);
    expect(desk.actual.device?.peers.map(({ publicKey }) => publicKey)).toEqual([relay.publicKey]);
  });

  it('is a peer that the map merely lacks, though another one is stated to be gone', async () => {
    const desk = await crowdedDesk();
    desk.answers = [answerRemoving(mapAt('"2"', [relay]), [3])];
    expect(await reconcileNetworks(desk.tools)).toMatchObject([{ failure: { name: 'NotConfirmed' } }]);
    expect(desk.actual.device?.peers).toHaveLength(4);
  });

  it('is confirmed at once when a retained peer responds, even if the map drops most peers', async () => {
    const desk = await crowdedDesk();
    desk.alive.add('10.77.0.2');
    await passNetwork(desk.tools, 'cpn0', to(mapAt('"2"', [relay])), options);
    expect(desk.actual.device?.peers.map(({ publicKey }) => publicKey)).toEqual([relay.publicKey]);
  });
});

it('a newer map that only adds a peer needs no confirmation', async () => {
  const desk = await settledDesk();
  const more = mapAt('"2"', [relay, peer(3, { endpoint: dialled(3) })]);
  await passNetwork(desk.tools, 'cpn0', { map: more, resolved: null }, options);
  expect(desk.asked).toEqual([]);
  expect((await desk.state()).membership.map.revision).toBe('"2"');
});

describe('cpn up', () => {
  it('writes once before the first step: that the network is up, and what is about to be made', async () => {
    const desk = await Desk.with({ ...joinedTo(before), enabled: false });
    const { store } = desk.tools;
    const written: { readonly state: Joined; readonly steps: number }[] = [];
    const counting = {
      ...store,
      write: (state: Joined) => {
        written.push({ state, steps: desk.steps.length });
        return store.write(state);
      },
    };
    await bringUp({ ...desk.tools, store: counting });
    expect(written.filter(({ steps }) => steps === 0)).toMatchObject([
      { state: { enabled: true, receipt: expect.arrayContaining([{ made: 'interface', link: 'cpn0' }]) } },
    ]);
    written.length = 0;
    await bringUp({ ...desk.tools, store: counting });
    expect(written).toEqual([]);
  });
});

describe('a peer that expires', () => {
  const at = Date.parse('2031-01-01T00:00:00Z');
  const lost = peer(2, { endpoint: dialled(2), expiresAt: at });
  /** A network of two, and the clock of its service so many milliseconds from the expiry. */
  async function pairDesk(left: number): Promise<Desk> {
    const desk = await Desk.with(joinedTo(mapAt('"1"', [lost])));
    const clock = { service: at - left, uptime: desk.tools.uptime() };
    const sync = { mode: 'push', lastSuccess: null, error: null, refused: null, clock } as const;
    await desk.tools.store.amendNotes('cpn0', { sync });
    desk.answers = [fail(gone)];
    return desk;
  }
  const peersOf = ({ actual }: Desk) => actual.device?.peers.length;

  it('is dropped by a pass after that, without the control plane, and though it was the only one', async () => {
    const desk = await pairDesk(5_000);
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(peersOf(desk)).toBe(1);
    desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
    desk.seconds += 6;
    await passNetwork(desk.tools, 'cpn0', noUpdate, options);
    expect(peersOf(desk)).toBe(0);
    expect((await desk.state()).membership.map.peers).toHaveLength(2);
  });

  it('stays until then, though the wall clock of the host is years ahead', async () => {
    const desk = await pairDesk(60_000);
    const tools = { ...desk.tools, now: () => new Date('2040-01-01T00:00:00Z') };
    await passNetwork(tools, 'cpn0', noUpdate, options);
    expect(peersOf(desk)).toBe(1);
  });
});
