import { describe, expect, it } from 'vitest';
import type { OptionChanges } from '../../../src/app/networks/option-changes.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { planOptions, setOptions } from '../../../src/app/options/set-options.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { CannotReport, NotKept, Refused, Unreachable, WrongUsage } from '../../../src/core/errors/index.ts';
import { features } from '../../../src/core/map/features.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import type { HostStore } from '../../../src/store/store.ts';
import { dialled, options, peer } from '../../core/samples.ts';
import { answerWith, Desk, fail, joinedTo, mapAt } from '../desk.ts';
import { one, serving, startServing, two } from '../serving.ts';

const none: OptionChanges = { options: {}, allowRoutes: [], refuseRoutes: [], addProbes: [], dropProbes: [] };
const gone = new Unreachable('https://x', 'refused', { delivered: false, heard: false, retryAfterMs: null });
const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const lan = { host: '192.168.50.1', port: null };

/** A host that is up and has a handshake with peer 2. */
async function settle(desk: Desk): Promise<Desk> {
  await reconcileNetworks(desk.tools);
  desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
  desk.steps.length = 0;
  return desk;
}

async function startDesk(): Promise<Desk> {
  const desk = await Desk.with(joinedTo(map));
  desk.answers = [answerWith(map)];
  return settle(desk);
}

describe('setting options', () => {
  it('changes what was named, on the host and on disk, and leaves the rest', async () => {
    const desk = await startDesk();
    const changes = { ...none, options: { mtu: 1300, pin: 'strict' as const }, allowRoutes: [one] };
    const report = await setOptions(desk.tools, undefined, changes);
    expect(report).toMatchObject({ interface: 'cpn0', failure: null });
    expect(report.changes.map(({ kind }) => kind)).toContain('interface');
    expect(desk.actual.link?.mtu).toBe(1300);
    const { options } = await desk.state();
    expect(options).toMatchObject({ mtu: 1300, pin: 'strict', acceptRoutes: true, listenPort: null });
    expect(options.allowRoutes).toEqual([one]);
    expect(await desk.tools.store.readConfig('cpn0')).toContain('MTU = 1300');
    expect(desk.described).toEqual([]);
  });

  it('refuses a proxy or a control plane that only a route of the network leads to, and changes nothing', async () => {
    const lanRoute = parsePrefix('192.168.50.0/24');
    const withRoute = mapAt('"1"', [peer(2, { type: 'connector', endpoint: dialled(2) })], { routes: [lanRoute] });
    const start = async (changes: Partial<Joined> = {}) => {
      const desk = await Desk.with(joinedTo(withRoute, changes));
      desk.answers = [answerWith(withRoute)];
      return settle(desk);
    };
    const proxy = parseProxy('http://192.168.50.9:3128', '--proxy');
    const refused = {
      name: 'CannotMove',
      message: expect.stringMatching(/http:\/\/192\.168\.50\.9:3128 is reached through the route 192\.168\.50\.0\/24/),
    };
    const desk = await start();
    const before = await desk.state();
    await expect(setOptions(desk.tools, undefined, { ...none, proxy })).rejects.toMatchObject(refused);
    await expect(planOptions(desk.tools, undefined, { ...none, proxy })).rejects.toMatchObject(refused);
    const service = { url: 'https://192.168.50.9', insecureHttp: false };
    await expect(setOptions(desk.tools, undefined, { ...none, service })).rejects.toMatchObject({ name: 'CannotMove' });
    expect([await desk.state(), desk.steps]).toEqual([before, []]);
    // One outside, and one in a route that a person lets through, are taken.
    const outside = parseProxy('http://198.51.100.9:3128', '--proxy');
    await setOptions(desk.tools, undefined, { ...none, proxy: outside });
    expect((await desk.state()).service.proxy).toEqual(outside);
    const allowing = await start({ options: { ...options, allowRoutes: [lanRoute] } });
    await setOptions(allowing.tools, undefined, { ...none, proxy });
    expect((await allowing.state()).service.proxy).toEqual(proxy);
  });

  it('warns of flags for connectors on another host, and of a probe that is not there', async () => {
    const desk = await startDesk();
    const changes = { ...none, options: { masquerade: false }, dropProbes: [lan] };
    const warnings: string[] = [];
    const warn = (text: string) => void warnings.push(text);
    await planOptions({ ...desk.tools, warn }, undefined, changes);
    expect(warnings.splice(0)).toEqual([
      '--masquerade has no effect: cpn0 is joined as origin, not as a connector',
      '--drop-probe has no effect: cpn0 is joined as origin, not as a connector',
    ]);
    const state = joinedTo(map);
    const connector = await Desk.with({ ...state, enrollment: { ...state.enrollment, type: 'connector' } });
    await planOptions({ ...connector.tools, warn }, undefined, changes);
    expect(warnings).toEqual(['--drop-probe 192.168.50.1 has no effect: cpn0 does not probe it']);
  });

  it('opens a port that was closed since only when the user sets the option again', async () => {
    const desk = await Desk.with(joinedTo(map, { options: { ...options, listenPort: 51820, openFirewall: true } }));
    desk.answers = [answerWith(map)];
    await settle(desk);
    const at = { by: 'ufw', port: 51820, zone: null, permanent: true } as const;
    desk.ports = [{ at, is: 'closed' }];
    await setOptions(desk.tools, undefined, { ...none, options: { mtu: 1300 } });
    expect(desk.steps.filter((step) => step.do === 'open-port')).toEqual([]);
    const { changes } = await setOptions(desk.tools, undefined, { ...none, options: { openFirewall: true } });
    expect(changes).toMatchObject([{ action: 'add', kind: 'firewall', target: 'ufw' }]);
    expect(desk.steps.filter((step) => step.do === 'open-port')).toHaveLength(1);
  });

  it('adds to lists, takes from them, and takes values back', async () => {
    const desk = await settle(await startServing(serving()));
    await setOptions(desk.tools, 'office', {
      ...none,
      options: { mtu: 1300 },
      allowRoutes: [one, two],
      addProbes: [lan],
    });
    expect((await desk.state()).options.probes).toEqual([lan]);
    await desk.tools.store.amendNotes('cpn0', { dead: [one] });
    const back = { ...none, options: { mtu: null }, refuseRoutes: [one], dropProbes: [lan] };
    await setOptions(desk.tools, 'office', back);
    expect((await desk.state()).options).toMatchObject({ mtu: null, allowRoutes: [two], probes: [] });
    expect((await desk.tools.store.readNotes('cpn0')).dead).toEqual([]);
    expect(desk.actual.link?.mtu).toBe(1420);
  });

  it('rolls back when the peers stop responding, and does not refuse the map', async () => {
    const desk = await startDesk();
    const before = await desk.state();
    desk.answers = [fail(gone)];
    await expect(setOptions(desk.tools, undefined, { ...none, options: { mtu: 1300 } })).rejects.toBeInstanceOf(
      NotKept,
    );
    expect(desk.actual.link?.mtu).toBe(1420);
    expect(await desk.state()).toEqual(before);
  });

  it('keeps them with a warning when no peer responded before either', async () => {
    const desk = await startDesk();
    desk.touch(2, { latestHandshake: null });
    desk.answers = [fail(gone)];
    const warnings: string[] = [];
    const tools = { ...desk.tools, warn: (text: string) => void warnings.push(text) };
    await setOptions(tools, undefined, { ...none, options: { mtu: 1300 } });
    expect((await desk.state()).options.mtu).toBe(1300);
    expect(warnings).toMatchObject([expect.stringContaining('nothing can confirm')]);
  });

  it('rolls back when the host refuses them', async () => {
    const desk = await startDesk();
    desk.refuses = () => true;
    await expect(setOptions(desk.tools, undefined, { ...none, options: { mtu: 1300 } })).rejects.toThrow(
      'exited with 1',
    );
    expect((await desk.state()).options.mtu).toBeNull();
  });

  it('only shows what would change with a dry run', async () => {
    const desk = await startDesk();
    const changes = { ...none, options: { mtu: 1300 }, endpoint: parseEndpoint('203.0.113.1:51999') };
    const before = await desk.state();
    const report = await planOptions(desk.tools, undefined, changes);
    expect(report.changes.length).toBeGreaterThan(0);
    expect([desk.steps, desk.described, await desk.state()]).toEqual([[], [], before]);
  });

  it('of a network that is down are for when it comes up', async () => {
    const desk = await Desk.with(joinedTo(map, { enabled: false }));
    expect(await setOptions(desk.tools, 'cpn0', { ...none, options: { mtu: 1300 } })).toMatchObject({ changes: [] });
    expect([desk.steps, (await desk.state()).options.mtu]).toEqual([[], 1300]);
  });

  it('needs one network, and for probes a connector', async () => {
    const desk = await startDesk();
    await expect(setOptions(desk.tools, 'cpn0', { ...none, addProbes: [lan] })).rejects.toThrow('joined as origin');
    await desk.tools.store.write(joinedTo({ ...map, id: 8, name: 'lab' }, { interface: 'cpn1' }));
    await expect(setOptions(desk.tools, undefined, none)).rejects.toBeInstanceOf(WrongUsage);
  });
});

describe('setting the description of this host', () => {
  const endpoint = parseEndpoint('203.0.113.1:51999');

  it('reports it to the control plane, and changes the port accordingly', async () => {
    const desk = await startDesk();
    await setOptions(desk.tools, undefined, { ...none, endpoint, name: 'edge' });
    expect(desk.described).toEqual([{ endpoint, name: 'edge' }]);
    const { enrollment, options, membership } = await desk.state();
    expect([enrollment.endpoint, options.listenPort, membership.peer.name]).toEqual([endpoint, 51999, 'edge']);
    expect(desk.actual.device?.listenPort).toBe(51999);
    await setOptions(desk.tools, undefined, { ...none, endpoint: null });
    expect((await desk.state()).options.listenPort).toBeNull();
  });

  it('reads first what the service describes, where that was never read', async () => {
    const desk = await startDesk();
    await desk.tools.store.write({ ...(await desk.state()), features: null });
    let isLocked = false;
    const lock: HostStore['lock'] = async (work) => {
      // It would wait for itself.
      if (isLocked) throw new Error('locked twice');
      isLocked = true;
      return desk.tools.store.lock(work).finally(() => {
        isLocked = false;
      });
    };
    const tools = { ...desk.tools, store: { ...desk.tools.store, lock } };
    await setOptions(tools, undefined, { ...none, name: 'edge' });
    expect([desk.described, (await desk.state()).features]).toEqual([[{ name: 'edge' }], features]);
  });

  it('goes back to the port of the endpoint when it is to listen on any, else to the choice of the kernel', async () => {
    const desk = await startDesk();
    await setOptions(desk.tools, undefined, { ...none, endpoint });
    const listen = async (listenPort: number | null, changes: Partial<OptionChanges> = {}) => {
      await setOptions(desk.tools, undefined, { ...none, ...changes, options: { listenPort } });
      const [status] = await readStatus(desk.tools);
      return [(await desk.state()).options.listenPort, status?.listenPort, status?.drift.length];
    };
    expect(await listen(40_123)).toEqual([40_123, 40_123, 0]);
    expect(await listen(null)).toEqual([51_999, 51_999, 0]);
    expect(await listen(null, { endpoint: { ...endpoint, port: 52_000 } })).toEqual([52_000, 52_000, 0]);
    expect(await listen(40_123, { endpoint: null })).toEqual([40_123, 40_123, 0]);
    expect(
      (await planOptions(desk.tools, undefined, { ...none, options: { listenPort: null } })).changes,
    ).toMatchObject([
      { kind: 'file' },
      { kind: 'interface', before: { 'listen port': 40_123 }, after: { 'listen port': 'any' } },
    ]);
    expect(await listen(null)).toEqual([null, 40_001, 0]);
    expect(await desk.tools.store.readConfig('cpn0')).not.toContain('ListenPort');
  });

  it('warns where peers dial a port that is no longer listened on', async () => {
    const desk = await startDesk();
    const warnings: string[] = [];
    const tools = { ...desk.tools, warn: (text: string) => void warnings.push(text) };
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
    const desk = await startDesk();
    await setOptions(desk.tools, undefined, { ...none, options: { listenPort: 40_000 } });
    await setOptions(desk.tools, undefined, { ...none, endpoint });
    expect((await desk.state()).options.listenPort).toBe(40_000);
  });

  it('changes nothing here when the control plane refuses or is unreachable', async () => {
    const desk = await startDesk();
    const before = await desk.state();
    desk.describes = () => {
      throw new Refused(422, 'changing', 'no', 'give another');
    };
    const changes = { ...none, endpoint, options: { mtu: 1300 } };
    await expect(setOptions(desk.tools, undefined, changes)).rejects.toBeInstanceOf(Refused);
    expect([desk.steps, await desk.state()]).toEqual([[], before]);
    const { membership, ...state } = before;
    await desk.tools.store.write({ ...state, membership: { ...membership, accessToken: null } });
    await expect(setOptions(desk.tools, undefined, changes)).rejects.toBeInstanceOf(CannotReport);
  });
});
