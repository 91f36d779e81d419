import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { OptionChanges } from '../../../src/app/networks/option-changes.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { planOptions, setOptions } from '../../../src/app/options/set-options.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { tagOf } from '../../../src/core/crypto/network-secret.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import {
  CannotReport,
  Interrupted,
  NotKept,
  Refused,
  Unreachable,
  WrongUsage,
} from '../../../src/core/errors/index.ts';
import { features } from '../../../src/core/map/features.ts';
import { parsePrefixMap } from '../../../src/core/map/prefix-maps.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import type { HostStore } from '../../../src/store/store.ts';
import { dialled, options, peer } from '../../core/samples.ts';
import { joinedTo, mapAt, noOptionChanges as none } from '../joined-state.ts';
import { one, serving, startServing, two } from '../serving.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail } from '../simulated-service.ts';

const gone = new Unreachable('https://x', 'refused', { delivered: false, heard: false, retryAfterMs: null });
const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const lan = { host: '192.168.50.1', port: null };

/** A host that is up and has a handshake with peer 2. */
async function settle(simulated: SimulatedHost): Promise<SimulatedHost> {
  await reconcileNetworks(simulated.tools);
  simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  simulated.steps.length = 0;
  return simulated;
}

async function startDesk(): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.service.mapReplies = [answerWith(map)];
  return settle(simulated);
}

describe('setting options', () => {
  it('forgets that the resolver refused the DNS settings if it names that option', async () => {
    const simulated = await startDesk();
    const refusedDns = { servers: [], domains: [], lost: [], failure: 'no', at: '2023-01-01T00:00:00.000Z' };
    await simulated.tools.store.write({ ...(await simulated.state()), refusedDns });
    await setOptions(simulated.tools, undefined, { ...none, options: { mtu: 1300 } });
    expect((await simulated.state()).refusedDns).toEqual(refusedDns);
    await setOptions(simulated.tools, undefined, { ...none, options: { dns: true } });
    expect(await simulated.state()).not.toHaveProperty('refusedDns');
  });

  it('changes what was named, on the host and on disk, and leaves the rest', async () => {
    const simulated = await startDesk();
    const changes = { ...none, options: { mtu: 1300, pin: 'strict' as const }, allowRoutes: [one] };
    const report = await setOptions(simulated.tools, undefined, changes);
    expect(report).toMatchObject({ interface: 'cpn0', failure: null });
    expect(report.changes.map(({ kind }) => kind)).toContain('interface');
    expect(simulated.actual.link?.mtu).toBe(1300);
    const { options } = await simulated.state();
    expect(options).toMatchObject({ mtu: 1300, pin: 'strict', acceptRoutes: true, listenPort: null });
    expect(options.allowRoutes).toEqual([one]);
    expect(await simulated.tools.store.readConfig('cpn0')).toContain('MTU = 1300');
    expect(simulated.service.descriptions).toEqual([]);
  });

  it('refuses a proxy or a control plane that only a route of the network leads to, and changes nothing', async () => {
    const lanRoute = parsePrefix('192.168.50.0/24');
    const withRoute = mapAt('"1"', [peer(2, { type: 'connector', endpoint: dialled(2) })], { routes: [lanRoute] });
    const start = async (changes: Partial<Joined> = {}) => {
      const simulated = await SimulatedHost.with(joinedTo(withRoute, changes));
      simulated.service.mapReplies = [answerWith(withRoute)];
      return settle(simulated);
    };
    const proxy = parseProxy('http://192.168.50.9:3128', '--proxy');
    const refused = {
      name: 'CannotMove',
      message: expect.stringMatching(/http:\/\/192\.168\.50\.9:3128 is reached through the route 192\.168\.50\.0\/24/),
    };
    const simulated = await start();
    const before = await simulated.state();
    await expect(setOptions(simulated.tools, undefined, { ...none, proxy })).rejects.toMatchObject(refused);
    await expect(planOptions(simulated.tools, undefined, { ...none, proxy })).rejects.toMatchObject(refused);
    const service = { url: 'https://192.168.50.9', insecureHttp: false };
    await expect(setOptions(simulated.tools, undefined, { ...none, service })).rejects.toMatchObject({
      name: 'CannotMove',
    });
    expect([await simulated.state(), simulated.steps]).toEqual([before, []]);
    // One outside, and one in a route that a person lets through, are taken.
    const outside = parseProxy('http://198.51.100.9:3128', '--proxy');
    await setOptions(simulated.tools, undefined, { ...none, proxy: outside });
    expect((await simulated.state()).service.proxy).toEqual(outside);
    const allowing = await start({ options: { ...options, allowRoutes: [lanRoute] } });
    await setOptions(allowing.tools, undefined, { ...none, proxy });
    expect((await allowing.state()).service.proxy).toEqual(proxy);
  });

  it('warns of flags for connectors on another host, and of a probe that is not there', async () => {
    const simulated = await startDesk();
    const changes = { ...none, options: { masquerade: false }, dropProbes: [lan] };
    const warnings: string[] = [];
    const warn = (text: string) => void warnings.push(text);
    await planOptions({ ...simulated.tools, warn }, undefined, changes);
    expect(warnings.splice(0)).toEqual([
      '--masquerade has no effect: cpn0 is joined as origin, not as a connector',
      '--drop-probe has no effect: cpn0 is joined as origin, not as a connector',
    ]);
    const state = joinedTo(map);
    const connector = await SimulatedHost.with({ ...state, enrollment: { ...state.enrollment, type: 'connector' } });
    await planOptions({ ...connector.tools, warn }, undefined, changes);
    expect(warnings).toEqual(['--drop-probe 192.168.50.1 has no effect: cpn0 does not probe it']);
  });

  it('opens a port that was closed since only when the user sets the option again', async () => {
    const simulated = await SimulatedHost.with(
      joinedTo(map, { options: { ...options, listenPort: 51820, openFirewall: true } }),
    );
    simulated.service.mapReplies = [answerWith(map)];
    await settle(simulated);
    const at = { by: 'ufw', port: 51820, zone: null, permanent: true } as const;
    simulated.ports = [{ at, is: 'closed' }];
    await setOptions(simulated.tools, undefined, { ...none, options: { mtu: 1300 } });
    expect(simulated.steps.filter((step) => step.do === 'open-port')).toEqual([]);
    const { changes } = await setOptions(simulated.tools, undefined, { ...none, options: { openFirewall: true } });
    expect(changes).toMatchObject([{ action: 'add', kind: 'firewall', target: 'ufw' }]);
    expect(simulated.steps.filter((step) => step.do === 'open-port')).toHaveLength(1);
  });

  it('adds to lists, takes from them, and takes values back', async () => {
    const simulated = await settle(await startServing(serving()));
    await setOptions(simulated.tools, 'office', {
      ...none,
      options: { mtu: 1300 },
      allowRoutes: [one, two],
      addProbes: [lan],
    });
    expect((await simulated.state()).options.probes).toEqual([lan]);
    await simulated.tools.store.amendNotes('cpn0', { dead: [one] });
    const back = { ...none, options: { mtu: null }, refuseRoutes: [one], dropProbes: [lan] };
    await setOptions(simulated.tools, 'office', back);
    expect((await simulated.state()).options).toMatchObject({ mtu: null, allowRoutes: [two], probes: [] });
    expect((await simulated.tools.store.readNotes('cpn0')).dead).toEqual([]);
    expect(simulated.actual.link?.mtu).toBe(1420);
  });

  it('rolls back when the peers stop responding, and does not refuse the map', async () => {
    const simulated = await startDesk();
    const before = await simulated.state();
    simulated.service.mapReplies = [fail(gone)];
    await expect(setOptions(simulated.tools, undefined, { ...none, options: { mtu: 1300 } })).rejects.toBeInstanceOf(
      NotKept,
    );
    expect(simulated.actual.link?.mtu).toBe(1420);
    expect(await simulated.state()).toEqual(before);
  });

  it('keeps them with a warning when no peer responded before either', async () => {
    const simulated = await startDesk();
    simulated.updatePeer(2, { latestHandshake: null });
    simulated.service.mapReplies = [fail(gone)];
    const warnings: string[] = [];
    const tools = { ...simulated.tools, warn: (text: string) => void warnings.push(text) };
    await setOptions(tools, undefined, { ...none, options: { mtu: 1300 } });
    expect((await simulated.state()).options.mtu).toBe(1300);
    expect(warnings).toMatchObject([expect.stringContaining('nothing can confirm')]);
  });

  it('rolls back when the host refuses them', async () => {
    const simulated = await startDesk();
    simulated.refusesStep = () => true;
    await expect(setOptions(simulated.tools, undefined, { ...none, options: { mtu: 1300 } })).rejects.toThrow(
      'exited with 1',
    );
    expect((await simulated.state()).options.mtu).toBeNull();
  });

  it('only shows what would change with a dry run', async () => {
    const simulated = await startDesk();
    const changes = { ...none, options: { mtu: 1300 }, endpoint: parseEndpoint('203.0.113.1:51999') };
    const before = await simulated.state();
    const report = await planOptions(simulated.tools, undefined, changes);
    expect(report.changes.length).toBeGreaterThan(0);
    expect([simulated.steps, simulated.service.descriptions, await simulated.state()]).toEqual([[], [], before]);
  });

  it('of a network that is down are for when it comes up', async () => {
    const simulated = await SimulatedHost.with(joinedTo(map, { enabled: false }));
    expect(await setOptions(simulated.tools, 'cpn0', { ...none, options: { mtu: 1300 } })).toMatchObject({
      changes: [],
    });
    expect([simulated.steps, (await simulated.state()).options.mtu]).toEqual([[], 1300]);
  });

  it('warns of a map whose prefix is no route that this host serves, also without changing anything', async () => {
    const state = serving();
    const simulated = await SimulatedHost.with(state);
    simulated.service.mapReplies = [answerWith(state.membership.map)];
    const warnings: string[] = [];
    const tools = { ...simulated.tools, warn: (text: string) => void warnings.push(text) };
    const addMaps = ['10.201.1.0/24=192.168.1.0/24', `${one}=192.168.2.0/24`].map((text) => parsePrefixMap(text));
    const warning =
      '10.201.1.0/24, which --map maps to 192.168.1.0/24, is no route of network office that this host serves; ';
    await planOptions(tools, 'cpn0', { ...none, addMaps });
    expect(warnings).toEqual([expect.stringContaining(warning)]);
    await setOptions(tools, 'cpn0', { ...none, addMaps });
    expect(warnings).toEqual([expect.stringContaining(warning), expect.stringContaining(warning)]);
    expect((await simulated.state()).options.maps).toEqual(addMaps);
  });

  it('needs one network, and for probes a connector', async () => {
    const simulated = await startDesk();
    await expect(setOptions(simulated.tools, 'cpn0', { ...none, addProbes: [lan] })).rejects.toThrow(
      'joined as origin',
    );
    await simulated.tools.store.write(joinedTo({ ...map, id: 8, name: 'lab' }, { interface: 'cpn1' }));
    await expect(setOptions(simulated.tools, undefined, none)).rejects.toBeInstanceOf(WrongUsage);
  });
});

describe('setting the description of this host', () => {
  const endpoint = parseEndpoint('203.0.113.1:51999');

  it('reports it to the control plane, and changes the port accordingly', async () => {
    const simulated = await startDesk();
    await setOptions(simulated.tools, undefined, { ...none, endpoint, name: 'edge' });
    expect(simulated.service.descriptions).toEqual([{ endpoint, name: 'edge' }]);
    const { enrollment, options, membership } = await simulated.state();
    expect([enrollment.endpoint, options.listenPort, membership.peer.name]).toEqual([endpoint, 51999, 'edge']);
    expect(simulated.actual.device?.listenPort).toBe(51999);
    await setOptions(simulated.tools, undefined, { ...none, endpoint: null });
    expect((await simulated.state()).options.listenPort).toBeNull();
  });

  it('reads first what the service describes, where that was never read', async () => {
    const simulated = await startDesk();
    await simulated.tools.store.write({ ...(await simulated.state()), features: null });
    let isLocked = false;
    const lock: HostStore['lock'] = async (work) => {
      // It would wait for itself.
      if (isLocked) throw new Error('locked twice');
      isLocked = true;
      return simulated.tools.store.lock(work).finally(() => {
        isLocked = false;
      });
    };
    const tools = { ...simulated.tools, store: { ...simulated.tools.store, lock } };
    await setOptions(tools, undefined, { ...none, name: 'edge' });
    expect([simulated.service.descriptions, (await simulated.state()).features]).toEqual([
      [{ name: 'edge' }],
      features,
    ]);
  });

  it('goes back to the port of the endpoint when it is to listen on any, else to the choice of the kernel', async () => {
    const simulated = await startDesk();
    await setOptions(simulated.tools, undefined, { ...none, endpoint });
    const listen = async (listenPort: number | null, changes: Partial<OptionChanges> = {}) => {
      await setOptions(simulated.tools, undefined, { ...none, ...changes, options: { listenPort } });
      const [status] = await readStatus(simulated.tools);
      return [(await simulated.state()).options.listenPort, status?.listenPort, status?.drift.length];
    };
    expect(await listen(40_123)).toEqual([40_123, 40_123, 0]);
    expect(await listen(null)).toEqual([51_999, 51_999, 0]);
    expect(await listen(null, { endpoint: { ...endpoint, port: 52_000 } })).toEqual([52_000, 52_000, 0]);
    expect(await listen(40_123, { endpoint: null })).toEqual([40_123, 40_123, 0]);
    expect(
      (await planOptions(simulated.tools, undefined, { ...none, options: { listenPort: null } })).changes,
    ).toMatchObject([
      { kind: 'file' },
      { kind: 'interface', before: { 'listen port': 40_123 }, after: { 'listen port': 'any' } },
    ]);
    expect(await listen(null)).toEqual([null, 40_001, 0]);
    expect(await simulated.tools.store.readConfig('cpn0')).not.toContain('ListenPort');
  });

  it('warns where peers dial a port that is no longer listened on', async () => {
    const simulated = await startDesk();
    const warnings: string[] = [];
    const tools = { ...simulated.tools, warn: (text: string) => void warnings.push(text) };
    const listen = (listenPort: number) => setOptions(tools, undefined, { ...none, options: { listenPort } });
    await setOptions(tools, undefined, { ...none, endpoint });
    expect(warnings).toEqual([]);
    await listen(40_123);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^peers dial 203\.0\.113\.1:51999, and cpn0 listens on 40123 now; .*--endpoint 203\.0\.113\.1:40123"/,
      ),
    ]);
    await listen(40_124);
    await listen(51_999);
    expect(warnings).toHaveLength(1);
  });

  it('leaves a port alone that was chosen by itself', async () => {
    const simulated = await startDesk();
    await setOptions(simulated.tools, undefined, { ...none, options: { listenPort: 40_000 } });
    await setOptions(simulated.tools, undefined, { ...none, endpoint });
    expect((await simulated.state()).options.listenPort).toBe(40_000);
  });

  it('changes nothing here when the control plane refuses or is unreachable', async () => {
    const simulated = await startDesk();
    const before = await simulated.state();
    simulated.service.onDescribePeer = () => {
      throw new Refused(422, 'changing', 'no', 'give another');
    };
    const changes = { ...none, endpoint, options: { mtu: 1300 } };
    await expect(setOptions(simulated.tools, undefined, changes)).rejects.toBeInstanceOf(Refused);
    expect([simulated.steps, await simulated.state()]).toEqual([[], before]);
    const { membership, ...state } = before;
    await simulated.tools.store.write({ ...state, membership: { ...membership, accessToken: null } });
    await expect(setOptions(simulated.tools, undefined, changes)).rejects.toBeInstanceOf(CannotReport);
  });
});

describe('setting one option', () => {
  it('leaves the port alone that the kernel chose', async () => {
    const simulated = await startDesk();
    const { device } = simulated.actual;
    simulated.service.mapReplies = [answerWith(map)];
    await setOptions(simulated.tools, undefined, { ...none, options: { mtu: 1300 } });
    expect([device?.listenPort, simulated.actual.device?.listenPort]).toEqual([40_000, 40_000]);
    expect(simulated.steps).not.toContainEqual(expect.objectContaining({ listenPort: expect.anything() }));
  });

  it('opens the port that is chosen now, and a plan of another option opens none', async () => {
    const opening = { ...options, listenPort: 51_820, openFirewall: true };
    const simulated = await SimulatedHost.with(joinedTo(map, { options: opening }));
    simulated.service.mapReplies = [answerWith(map)];
    await settle(simulated);
    simulated.ports = [40_123, 51_820].map((port) => ({
      at: { by: 'ufw', port, zone: null, permanent: true },
      is: 'closed',
    }));
    const { tools } = simulated;
    const planned = await planOptions(tools, undefined, { ...none, options: { mtu: 1300 } });
    expect(planned.changes.filter(({ kind }) => kind === 'firewall')).toEqual([]);
    await setOptions(tools, undefined, { ...none, options: { listenPort: 40_123 } });
    expect((await simulated.state()).openPorts).toMatchObject([{ port: 40_123 }]);
  });

  it('reports the tag of a network secret that was removed', async () => {
    const networkSecret = new Secret(Buffer.alloc(32, 7).toString('base64'));
    const tagged = { ...map, peers: map.peers.map((each) => ({ ...each, secretTag: tagOf(networkSecret) })) };
    const simulated = await SimulatedHost.with(joinedTo(tagged, { networkSecret }));
    simulated.service.mapReplies = [answerWith(tagged)];
    await settle(simulated);
    await setOptions(simulated.tools, undefined, { ...none, networkSecret: null });
    expect(simulated.service.announcedTags).toEqual([null]);
  });

  it('records again whether other packet rules drop what peers send', async () => {
    const simulated = await startDesk();
    await simulated.tools.store.amendNotes('cpn0', { inboundDropped: true });
    await setOptions(simulated.tools, undefined, { ...none, options: { mtu: 1300 } });
    expect((await simulated.tools.store.readNotes('cpn0')).inboundDropped).toBe(false);
  });

  it('of a network that is down requests no map, though the control plane got another name', async () => {
    const simulated = await SimulatedHost.with(joinedTo(map, { enabled: false }));
    await setOptions(simulated.tools, undefined, { ...none, name: 'edge' });
    expect([simulated.service.descriptions, simulated.service.mapRequests]).toEqual([[{ name: 'edge' }], []]);
  });

  it('needs the name of its network if another one is joined, also if that cannot be read', async () => {
    const simulated = await startDesk();
    const { tools } = simulated;
    await writeFile(join(dirname(tools.store.formerPath), 'cpn1.json'), '{', { mode: 0o600 });
    const changes = { ...none, options: { mtu: 1300 } };
    await expect(setOptions(tools, undefined, changes)).rejects.toThrow('name one network; joined: cpn0, cpn1');
    expect(await setOptions(tools, 'cpn0', changes)).toMatchObject({ interface: 'cpn0', failure: null });
  });
});

describe('a description of this host that does not last', () => {
  const endpoint = parseEndpoint('203.0.113.1:51999');
  const former = parseEndpoint('203.0.113.1:51820');

  it('is taken back at the control plane, each field of it', async () => {
    const { enrollment } = joinedTo(map);
    // The control plane gave this host another name than the one that it asked for.
    const asked = { ...enrollment, name: 'asked', endpoint: former };
    const simulated = await SimulatedHost.with(joinedTo(map, { enrollment: asked }));
    simulated.service.mapReplies = [answerWith(map)];
    await settle(simulated);
    simulated.refusesStep = () => true;
    for (const changes of [{ name: 'edge' }, { endpoint }, { endpoint, name: 'edge' }]) {
      simulated.service.descriptions.length = 0;
      await expect(
        setOptions(simulated.tools, undefined, { ...none, ...changes, options: { mtu: 1300 } }),
      ).rejects.toThrow('exited with 1');
      const back = { ...('name' in changes && { name: 'peer-1' }), ...('endpoint' in changes && { endpoint: former }) };
      expect(simulated.service.descriptions).toEqual([changes, back]);
    }
  });

  it('warns if the control plane keeps it, and fails as the change did', async () => {
    const simulated = await startDesk();
    const warnings: string[] = [];
    simulated.tools.warn = (text) => void warnings.push(text);
    simulated.refusesStep = () => true;
    simulated.service.onDescribePeer = ({ name }) => {
      if (name === 'peer-1') throw gone;
    };
    const changes = { ...none, name: 'edge', options: { mtu: 1300 } };
    await expect(setOptions(simulated.tools, undefined, changes)).rejects.toThrow('exited with 1');
    expect(warnings).toEqual([expect.stringMatching(/^the control plane still has the new name or endpoint.*refused/)]);
  });

  it('is taken back after a signal, also where nothing on the host needs a confirmation', async () => {
    const simulated = await startDesk();
    simulated.service.onDescribePeer = () => simulated.interrupting.abort(new Interrupted('SIGINT'));
    await expect(setOptions(simulated.tools, undefined, { ...none, name: 'edge' })).rejects.toBeInstanceOf(Interrupted);
    expect(simulated.service.descriptions).toEqual([{ name: 'edge' }, { name: 'peer-1' }]);
    expect((await simulated.state()).membership.peer.name).toBe('peer-1');
  });
});
