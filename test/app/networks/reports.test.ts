import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { takeDown } from '../../../src/app/networks/down.ts';
import { planNetworks, readReported, reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { bringUp } from '../../../src/app/networks/up.ts';
import { CommandFailed, Refused, Unreachable } from '../../../src/core/errors/index.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { address, bare, dialled, keyPair, peer, underlay } from '../../core/samples.ts';
import { joinedTo, mapAt, nonceOfMaps } from '../joined-state.ts';
import { mapWithout, one, serving, two } from '../serving.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail, type MapReply } from '../simulated-service.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const url = 'https://203.0.113.99';
const away = new Unreachable(url, 'silent', { delivered: false, heard: false, retryAfterMs: null });

async function start(state: Joined, ...replies: readonly MapReply[]) {
  const simulated = await SimulatedHost.with(state);
  simulated.service.mapReplies = [...replies];
  const warnings: string[] = [];
  simulated.tools.warn = (text) => void warnings.push(text);
  return { simulated, tools: simulated.tools, service: simulated.service, warnings };
}

describe('the reports of several networks', () => {
  it.each([
    ['cpn reconcile', (tools: SimulatedHost['tools']) => reconcileNetworks(tools)],
    ['cpn plan', (tools: SimulatedHost['tools']) => planNetworks(tools)],
    ['cpn up', (tools: SimulatedHost['tools']) => bringUp(tools)],
  ])('have each of them, with its failure: %s', async (_, work) => {
    const { tools } = await start(joinedTo(map), answerWith(map));
    for (const link of ['cpn1', 'cpn2']) await tools.store.write(joinedTo(map, { interface: link, enabled: false }));
    await writeFile(join(dirname(tools.store.formerPath), 'cpn3.json'), '{', { mode: 0o600 });
    const { observe } = tools.host;
    tools.host.observe = async (wanted) => {
      if (wanted.link === 'cpn0') throw new CommandFailed('ip link show cpn0', 1, 'no');
      return observe(wanted);
    };
    const reports = await work(tools);
    expect(reports.map(({ interface: link }) => link).toSorted()).toEqual(['cpn0', 'cpn1', 'cpn2', 'cpn3']);
    const failures = new Map(reports.map(({ interface: link, failure }) => [link, failure?.name]));
    expect([failures.get('cpn0'), failures.get('cpn3')]).toEqual(['CommandFailed', 'UnreadableFile']);
  });

  it('name the peers before and after the change', async () => {
    const newer = mapAt('"2"', [peer(3)]);
    const { tools } = await start(joinedTo(map), answerWith(newer), answerWith(newer));
    for (const [report] of [await planNetworks(tools), await reconcileNetworks(tools)]) {
      const names = [2, 3].map((number) => report?.names.get(keyPair(number).publicKey));
      expect(names).toEqual(['peer-2', 'peer-3']);
    }
  });
});

describe('a plan', () => {
  it('has no change for a network that is down, and observes nothing', async () => {
    const { simulated, tools } = await start(joinedTo(map, { enabled: false }), answerWith(map));
    expect(await planNetworks(tools)).toMatchObject([{ changes: [], failure: null }]);
    expect(simulated.observations).toBe(0);
  });

  it('warns of a deletion and of a pending change of keys', async () => {
    const deletion = { at: '2026-11-26T00:00:00.000Z', resumes: true };
    const { tools, warnings } = await start(joinedTo(map, { enabled: false, deletion }), fail(away));
    await planNetworks(tools);
    expect(warnings).toEqual([expect.stringContaining('deleted')]);
  });
});

describe('cpn reconcile', () => {
  it('reports nothing to a control plane that did not send the newest map', async () => {
    const withdrawn = serving({ drained: true });
    for (const [reply, count] of [
      [fail(away), 0],
      [answerWith(mapWithout([])), 1],
    ] as const) {
      const { tools, service } = await start(withdrawn, reply);
      await reconcileNetworks(tools);
      expect(service.withdrawn).toHaveLength(count);
    }
  });

  it('lists no change that needs packet rules which did not load', async () => {
    for (const loads of [true, false]) {
      const { simulated, tools } = await start(serving(), answerWith(mapWithout([])));
      simulated.refusesStep = (step) => step.do === 'set-firewall' && !loads;
      const [report] = await reconcileNetworks(tools);
      expect(report?.changes.some(({ kind }) => kind === 'firewall')).toBe(loads);
      expect(report?.failure?.name).toBe(loads ? undefined : 'RulesNotLoaded');
    }
  });

  it('records the paths of a connector to its LANs', async () => {
    const { simulated, tools } = await start(serving(), answerWith(mapWithout([])));
    const reached = [one, two].map((prefix, at) => ({ prefix, link: `eth${at + 1}` }));
    simulated.actual = { ...bare, underlay: { ...underlay, reached } };
    await reconcileNetworks(tools);
    expect(Object.keys((await tools.store.readNotes('cpn0')).ways ?? {})).toEqual([one, two]);
  });

  it('resolves the names of the newest map', async () => {
    const newer = mapAt('"2"', [peer(2, { endpoint: parseEndpoint('db.example.net:51820') })]);
    const { simulated, tools } = await start(joinedTo(map), answerWith(newer));
    simulated.dnsRecords = { 'db.example.net': [address('198.51.100.2')] };
    await reconcileNetworks(tools);
    expect((await simulated.state()).resolved).toEqual({ 'db.example.net': ['198.51.100.2'] });
    expect(simulated.actual.device?.peers).toMatchObject([{ endpoint: { host: '198.51.100.2' } }]);
  });

  it('requests the map again after the second statement of a deletion, which confirms it', async () => {
    const deleted = new Refused(410, 'reading network 7', 'it was deleted', null, {
      deleted: { id: 7, nonce: nonceOfMaps },
    });
    const { simulated, tools, service } = await start(joinedTo(map), answerWith(map), fail(deleted));
    await reconcileNetworks(tools);
    await reconcileNetworks(tools);
    simulated.seconds += 60;
    service.mapRequests.length = 0;
    await reconcileNetworks(tools);
    expect([(await simulated.state()).enabled, service.mapRequests.length]).toEqual([false, 2]);
  });

  it('does not read the description of a service that gave no token', async () => {
    const joined = joinedTo(map, { features: null });
    const { tools, service } = await start({ ...joined, membership: { ...joined.membership, accessToken: null } });
    let reads = 0;
    service.onDescribe = async () => {
      reads += 1;
      return { features: [], etag: null };
    };
    await reconcileNetworks(tools);
    expect(reads).toBe(0);
    await tools.store.write(joined);
    service.mapReplies = [answerWith(map)];
    await reconcileNetworks(tools);
    expect(reads).toBe(1);
  });

  it('after a report to the control plane warns of the map that is missing', async () => {
    const { tools, warnings } = await start(joinedTo(map), fail(away));
    await readReported(tools, 'cpn0');
    expect(warnings).toEqual([away.message]);
  });
});

describe('cpn up', () => {
  it('saves that the network is up, though nothing changes on the host', async () => {
    const { simulated, tools } = await start(joinedTo(map), answerWith(map));
    await bringUp(tools);
    await tools.store.write({ ...(await simulated.state()), enabled: false });
    expect(await bringUp(tools)).toMatchObject([{ changes: [], failure: null }]);
    expect((await simulated.state()).enabled).toBe(true);
  });

  it('leaves a network that failed to come up to the next pass', async () => {
    const { simulated, tools } = await start(joinedTo(map, { enabled: false }));
    simulated.refusesStep = (step) => step.do === 'configure-device';
    expect(await bringUp(tools)).toMatchObject([{ failure: { name: 'CommandFailed' } }]);
    expect(await simulated.state()).toMatchObject({ enabled: true, receipt: expect.not.arrayContaining([null]) });
    expect((await simulated.state()).receipt).not.toEqual([]);
  });
});

it('cpn down reads each network when its turn comes: the one before may have handed it resources', async () => {
  const { tools } = await start(joinedTo(map));
  const state = joinedTo(map, { interface: 'cpn1' });
  await tools.store.write(state);
  const { observe } = tools.host;
  const path = { made: 'folder', path: '/x' } as const;
  tools.host.observe = async (wanted) => {
    if (wanted.link === 'cpn0') await tools.store.write({ ...state, receipt: [path] });
    return observe(wanted);
  };
  await takeDown(tools, undefined, true);
  expect(await tools.store.read('cpn1')).toMatchObject({ enabled: false, receipt: [path] });
});
