import { expect, it } from 'vitest';
import { examine } from '../../../src/app/doctor/examine.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { statusToText } from '../../../src/cli/output/show-status.ts';
import { Refused } from '../../../src/core/errors/index.ts';
import { isProblem } from '../../../src/core/problems/problem.ts';
import { address, dialled, keyPair, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import type { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail } from '../simulated-service.ts';
import { problemsOf, startExaminedHost } from './examined-host.ts';

const edges = ['edge-1', 'edge-2'].map((name, at) =>
  peer(at + 2, { name, type: 'connector', endpoint: dialled(at + 2) }),
);
const map = mapAt('"1"', edges);
const lan = prefix('192.168.50.0/24');

/** Has the network end the stay of this host after so many days. */
async function endAt(simulated: SimulatedHost, days: number): Promise<void> {
  const expiresAt = simulated.tools.now().getTime() + days * 86_400_000;
  const { peers, ...rest } = mapAt('"2"', edges);
  const listed = peers.map((each) => (each.id === 1 ? { ...each, expiresAt } : each));
  simulated.service.mapReplies = [answerWith({ ...rest, peers: listed })];
  await reconcileNetworks(simulated.tools);
}

const cases: [string, (simulated: SimulatedHost) => Promise<unknown> | undefined][] = [
  ['a host that is well', async () => {}],
  [
    'drift',
    async (simulated) => {
      simulated.actual = { ...simulated.actual, routes: [] };
    },
  ],
  [
    'an endpoint whose port is not the listen port',
    async (simulated) => {
      const { peers, ...rest } = mapAt('"2"', edges);
      const moved = { host: address('203.0.113.22'), port: 51999 };
      const listed = peers.map((each) => (each.id === 1 ? { ...each, endpoint: moved } : each));
      simulated.service.mapReplies = [answerWith({ ...rest, peers: listed })];
      await reconcileNetworks(simulated.tools);
      const { underlay } = simulated.actual;
      simulated.actual = { ...simulated.actual, underlay: { ...underlay, addresses: [moved.host] } };
    },
  ],
  [
    'a connector that never answered',
    async (simulated) => simulated.updatePeer(2, { latestHandshake: null, keepalive: 25, txBytes: 10_000 }),
  ],
  ['a peer that fell silent', async (simulated) => simulated.updatePeer(3, { latestHandshake: 1, keepalive: 25 })],
  [
    'a connector that the daemon noted as failed',
    async (simulated) =>
      simulated.tools.store.write({ ...(await simulated.state()), failed: [{ peer: 2, back: false }] }),
  ],
  [
    'a route that leads past the tunnel',
    async (simulated) => {
      const routed = [
        { prefix: prefix('192.168.50.0/25'), link: 'eth0', gateway: null, protocol: 'static', metric: 0 },
      ];
      simulated.actual = { ...simulated.actual, underlay: { ...simulated.actual.underlay, routed: routed as never } };
    },
  ],
  [
    'a clone',
    async (simulated) => {
      const { sync } = await simulated.tools.store.readNotes('cpn0');
      await simulated.tools.store.amendNotes('cpn0', { sync: { ...sync, clonedSince: '2026-01-01T00:00:00.000Z' } });
    },
  ],
  [
    'a refused sync',
    async (simulated) => {
      const { sync } = await simulated.tools.store.readNotes('cpn0');
      await simulated.tools.store.amendNotes('cpn0', { sync: { ...sync, refused: 'token' } });
    },
  ],
  [
    'a network secret that this host lacks',
    async (simulated) => {
      simulated.service.mapReplies = [
        answerWith(
          mapAt(
            '"2"',
            edges.map((each) => ({ ...each, secretTag: 'ab' })),
          ),
        ),
      ];
      await reconcileNetworks(simulated.tools);
    },
  ],
  ['a host that expired', async (simulated) => endAt(simulated, -1)],
  ['a LAN that does not answer', async (simulated) => simulated.tools.store.amendNotes('cpn0', { dead: [lan] })],
  [
    'a LAN without a route',
    async (simulated) =>
      simulated.tools.store.amendNotes('cpn0', { ways: { [lan]: { isOwn: true, links: [], gone: 'eth1 is down' } } }),
  ],
  [
    'a network without connectors',
    async (simulated) => {
      const without = mapAt('"2"', [peer(2, { endpoint: dialled(2) })]);
      simulated.service.mapReplies = [answerWith(without)];
      await reconcileNetworks(simulated.tools);
    },
  ],
  [
    'a network that was taken down',
    async (simulated) => {
      await simulated.tools.store.write({ ...(await simulated.state()), enabled: false });
      simulated.actual = { ...simulated.actual, link: null, device: null, routes: [] };
    },
  ],
  [
    'an interface that is gone',
    async (simulated) => {
      simulated.actual = { ...simulated.actual, link: null, device: null, routes: [] };
    },
  ],
];

it.each(cases)(
  'cpn doctor and cpn status --check agree on %s, and the header has the reason',
  async (what, prepare) => {
    const { simulated, tools } = await startExaminedHost(map);
    for (const { id } of edges)
      simulated.updatePeer(Number(id), { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
    await prepare(simulated);
    const [status] = await readStatus(simulated.tools);
    if (status === undefined) throw new Error('there is no status');
    const isWell = what === 'a host that is well';
    expect(status.problems.some(isProblem)).toBe(!isWell);
    const found = await problemsOf(tools);
    expect([found.length > 0, found]).toEqual([!isWell, isWell ? [] : expect.anything()]);
    const [head = '', reason = ''] = statusToText(status, simulated.tools.now()).split('\n');
    expect(head).toMatch(isWell ? /^cpn0 {2}up / : /^cpn0 {2}(up|degraded|down) /);
    expect(reason).toMatch(isWell ? /^address/ : /^reason \S/);
  },
);

const notes: [string, RegExp, (simulated: SimulatedHost) => Promise<unknown>][] = [
  ['an end within days', /expires in 3 days/, (simulated) => endAt(simulated, 3)],
  [
    'a peer with two endpoints in turn',
    / alternately: two hosts may use its identity/,
    ({ tools }) =>
      tools.store.amendNotes('cpn0', {
        alternating: { [keyPair(2).publicKey]: ['203.0.113.2:51820', '203.0.113.9:51820'] },
      }),
  ],
];

it.each(notes)('cpn doctor has %s as a note, and cpn status --check passes', async (_, found, prepare) => {
  const { simulated, tools } = await startExaminedHost(map);
  for (const { id } of edges)
    simulated.updatePeer(Number(id), { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  await prepare(simulated);
  const [status] = await readStatus(simulated.tools);
  expect([status?.state, status?.problems.filter(isProblem)]).toEqual(['up', []]);
  expect(await problemsOf(tools)).toEqual([]);
  expect(await examine(tools)).toContainEqual(
    expect.objectContaining({ verdict: 'note', found: expect.stringMatching(found) }),
  );
});

it('a suspended host has no problem of the daemon, and its remedies are for an admin', async () => {
  const { simulated, tools } = await startExaminedHost(map);
  for (const { id } of edges)
    simulated.updatePeer(Number(id), { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  const refusal = new Refused(403, 'reading', 'this peer is suspended', 'an admin resumes it with "cpn peer resume"');
  simulated.service.mapReplies = [fail(refusal)];
  await reconcileNetworks(simulated.tools);
  const daemonFailure = { error: refusal.message, since: '2026-01-01T00:00:00.000Z', lastSuccess: null };
  await simulated.tools.store.amendNotes('cpn0', { daemonFailure });
  const found = await problemsOf(tools);
  expect(found.map(({ subject }) => subject)).toEqual(['api', 'api']);
  for (const { remedy } of found) expect(remedy).toMatch(/^an admin resumes /);
});

it('a deleted network is one problem, with its own remedy', async () => {
  const { simulated, tools } = await startExaminedHost(map);
  const deletion = { at: '2026-01-01T00:00:00.000Z', resumes: true };
  const refusal = new Refused(410, 'reading', 'the network was deleted', null);
  await simulated.tools.store.write({ ...(await simulated.state()), enabled: false, deletion });
  await simulated.tools.store.setConfigAside('cpn0');
  simulated.actual = { ...simulated.actual, link: null, device: null, routes: [] };
  simulated.service.mapReplies = [fail(refusal)];
  // The daemon goes on requesting the map, and each request is refused.
  const { sync } = await simulated.tools.store.readNotes('cpn0');
  await simulated.tools.store.amendNotes('cpn0', {
    sync: { ...sync, error: refusal.message, refused: 'gone', refusal: refusal.message },
    daemonFailure: { error: refusal.message, since: deletion.at, lastSuccess: null },
  });
  expect(await problemsOf(tools)).toMatchObject([{ subject: 'network', remedy: expect.stringContaining('cpn leave') }]);
  // A token that is void is another matter.
  simulated.service.mapReplies = [fail(new Refused(401, 'reading', 'no', 'join again'))];
  expect((await problemsOf(tools)).map(({ subject }) => subject)).toEqual(['api', 'network']);
});

it('a taken down network shows no peers, no routes and no reachability', async () => {
  const { simulated } = await startExaminedHost(map);
  await simulated.tools.store.amendNotes('cpn0', { reachability: { reachableBy: 2, witnesses: 2 } });
  expect((await readStatus(simulated.tools))[0]?.reachability).not.toBeNull();
  await simulated.tools.store.write({ ...(await simulated.state()), enabled: false });
  simulated.actual = { ...simulated.actual, link: null, device: null, routes: [] };
  const [status] = await readStatus(simulated.tools);
  if (status === undefined) throw new Error('there is no status');
  expect(status.reachability).toBeNull();
  const text = statusToText(status, simulated.tools.now());
  expect(text).toMatch(/^cpn0 {2}down {2}network office \(7\)\nreason taken down\n/);
  expect(text).not.toMatch(/reachable|never|edge-1/);
});

it('a connector that never answered is no standby', async () => {
  const { simulated } = await startExaminedHost(map);
  simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  const routes = async () => (await readStatus(simulated.tools))[0]?.routes.map(({ via, state }) => [via, state]);
  expect(await routes()).toEqual([
    ['edge-1', 'active'],
    ['edge-2', 'never'],
  ]);
  // The daemon forces a handshake with one that was heard before, and so its table has none.
  await simulated.tools.store.write({ ...(await simulated.state()), failed: [{ peer: 3, back: false, heard: 1 }] });
  expect((await routes())?.[1]).toEqual(['edge-2', 'standby']);
  await simulated.tools.store.write({ ...(await simulated.state()), failed: [{ peer: 3, back: false }] });
  expect((await routes())?.[1]).toEqual(['edge-2', 'never']);
  await simulated.tools.store.write({ ...(await simulated.state()), failed: [] });
  simulated.updatePeer(3, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  expect(await routes()).toEqual([
    ['edge-1', 'active'],
    ['edge-2', 'standby'],
  ]);
});

it('a subnet of this host within the range of the network is a note', async () => {
  const options = { ...joinedTo(map).options, allowRoutes: [map.cidr] };
  const { simulated, tools } = await startExaminedHost(map, { options });
  for (const { id } of edges)
    simulated.updatePeer(Number(id), { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  const connected = [{ prefix: prefix('10.77.0.128/25'), link: 'wlan0' }];
  simulated.actual = { ...simulated.actual, underlay: { ...simulated.actual.underlay, connected: connected as never } };
  const [status] = await readStatus(simulated.tools);
  expect(status).toMatchObject({ state: 'up', problems: [{ code: 'subnet-inside', severity: 'note' }] });
  expect(await problemsOf(tools)).toEqual([]);
});
