import { expect, it } from 'vitest';
import { examine } from '../../../src/app/doctor/examine.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { statusToText } from '../../../src/cli/output/show-status.ts';
import { Refused } from '../../../src/core/errors/index.ts';
import { isProblem } from '../../../src/core/problems/problem.ts';
import { address, dialled, keyPair, peer, prefix } from '../../core/samples.ts';
import { answerWith, type Desk, fail, joinedTo, mapAt } from '../desk.ts';
import { problemsOf, startDesk } from './doctor-desk.ts';

const edges = ['edge-1', 'edge-2'].map((name, at) =>
  peer(at + 2, { name, type: 'connector', endpoint: dialled(at + 2) }),
);
const map = mapAt('"1"', edges);
const lan = prefix('192.168.50.0/24');

/** Has the network end the stay of this host after so many days. */
async function endAt(desk: Desk, days: number): Promise<void> {
  const expiresAt = desk.tools.now().getTime() + days * 86_400_000;
  const { peers, ...rest } = mapAt('"2"', edges);
  const listed = peers.map((each) => (each.id === 1 ? { ...each, expiresAt } : each));
  desk.answers = [answerWith({ ...rest, peers: listed })];
  await reconcileNetworks(desk.tools);
}

const cases: [string, (desk: Desk) => Promise<unknown> | undefined][] = [
  ['a host that is well', async () => {}],
  [
    'drift',
    async (desk) => {
      desk.actual = { ...desk.actual, routes: [] };
    },
  ],
  [
    'an endpoint whose port is not the listen port',
    async (desk) => {
      const { peers, ...rest } = mapAt('"2"', edges);
      const moved = { host: address('203.0.113.22'), port: 51999 };
      const listed = peers.map((each) => (each.id === 1 ? { ...each, endpoint: moved } : each));
      desk.answers = [answerWith({ ...rest, peers: listed })];
      await reconcileNetworks(desk.tools);
      const { underlay } = desk.actual;
      desk.actual = { ...desk.actual, underlay: { ...underlay, addresses: [moved.host] } };
    },
  ],
  [
    'a connector that never answered',
    async (desk) => desk.touch(2, { latestHandshake: null, keepalive: 25, txBytes: 10_000 }),
  ],
  ['a peer that fell silent', async (desk) => desk.touch(3, { latestHandshake: 1, keepalive: 25 })],
  [
    'a connector that the daemon noted as failed',
    async (desk) => desk.tools.store.write({ ...(await desk.state()), failed: [{ peer: 2, back: false }] }),
  ],
  [
    'a route that leads past the tunnel',
    async (desk) => {
      const routed = [
        { prefix: prefix('192.168.50.0/25'), link: 'eth0', gateway: null, protocol: 'static', metric: 0 },
      ];
      desk.actual = { ...desk.actual, underlay: { ...desk.actual.underlay, routed: routed as never } };
    },
  ],
  [
    'a clone',
    async (desk) => {
      const { sync } = await desk.tools.store.readNotes('cpn0');
      await desk.tools.store.amendNotes('cpn0', { sync: { ...sync, clonedSince: '2026-01-01T00:00:00.000Z' } });
    },
  ],
  [
    'a refused sync',
    async (desk) => {
      const { sync } = await desk.tools.store.readNotes('cpn0');
      await desk.tools.store.amendNotes('cpn0', { sync: { ...sync, refused: 'token' } });
    },
  ],
  [
    'a network secret that this host lacks',
    async (desk) => {
      desk.answers = [
        answerWith(
          mapAt(
            '"2"',
            edges.map((each) => ({ ...each, secretTag: 'ab' })),
          ),
        ),
      ];
      await reconcileNetworks(desk.tools);
    },
  ],
  ['a host that expired', async (desk) => endAt(desk, -1)],
  ['a LAN that does not answer', async (desk) => desk.tools.store.amendNotes('cpn0', { dead: [lan] })],
  [
    'a LAN without a route',
    async (desk) =>
      desk.tools.store.amendNotes('cpn0', { ways: { [lan]: { isOwn: true, links: [], gone: 'eth1 is down' } } }),
  ],
  [
    'a network without connectors',
    async (desk) => {
      const without = mapAt('"2"', [peer(2, { endpoint: dialled(2) })]);
      desk.answers = [answerWith(without)];
      await reconcileNetworks(desk.tools);
    },
  ],
  [
    'a network that was taken down',
    async (desk) => {
      await desk.tools.store.write({ ...(await desk.state()), enabled: false });
      desk.actual = { ...desk.actual, link: null, device: null, routes: [] };
    },
  ],
  [
    'an interface that is gone',
    async (desk) => {
      desk.actual = { ...desk.actual, link: null, device: null, routes: [] };
    },
  ],
];

it.each(cases)(
  'cpn doctor and cpn status --check agree on %s, and the header has the reason',
  async (what, prepare) => {
    const { desk, tools } = await startDesk(map);
    for (const { id } of edges)
      desk.touch(Number(id), { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
    await prepare(desk);
    const [status] = await readStatus(desk.tools);
    if (status === undefined) throw new Error('there is no status');
    const isWell = what === 'a host that is well';
    expect(status.problems.some(isProblem)).toBe(!isWell);
    const found = await problemsOf(tools);
    expect([found.length > 0, found]).toEqual([!isWell, isWell ? [] : expect.anything()]);
    const [head = '', reason = ''] = statusToText(status, desk.tools.now()).split('\n');
    expect(head).toMatch(isWell ? /^cpn0 {2}up / : /^cpn0 {2}(up|degraded|down) /);
    expect(reason).toMatch(isWell ? /^address/ : /^reason \S/);
  },
);

const notes: [string, RegExp, (desk: Desk) => Promise<unknown>][] = [
  ['an end within days', /expires in 3 days/, (desk) => endAt(desk, 3)],
  [
    'a peer with two endpoints in turn',
    / in turn: two hosts may have its identity/,
    ({ tools }) =>
      tools.store.amendNotes('cpn0', {
        alternating: { [keyPair(2).publicKey]: ['203.0.113.2:51820', '203.0.113.9:51820'] },
      }),
  ],
];

it.each(notes)('cpn doctor has %s as a note, and cpn status --check passes', async (_, found, prepare) => {
  const { desk, tools } = await startDesk(map);
  for (const { id } of edges)
    desk.touch(Number(id), { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
  await prepare(desk);
  const [status] = await readStatus(desk.tools);
  expect([status?.state, status?.problems.filter(isProblem)]).toEqual(['up', []]);
  expect(await problemsOf(tools)).toEqual([]);
  expect(await examine(tools)).toContainEqual(
    expect.objectContaining({ verdict: 'note', found: expect.stringMatching(found) }),
  );
});

it('a suspended host has no problem of the daemon, and its remedies are for an admin', async () => {
  const { desk, tools } = await startDesk(map);
  for (const { id } of edges)
    desk.touch(Number(id), { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
  const refusal = new Refused(403, 'reading', 'this peer is suspended', 'an admin resumes it with "cpn peer resume"');
  desk.answers = [fail(refusal)];
  await reconcileNetworks(desk.tools);
  const daemonFailure = { error: refusal.message, since: '2026-01-01T00:00:00.000Z', lastSuccess: null };
  await desk.tools.store.amendNotes('cpn0', { daemonFailure });
  const found = await problemsOf(tools);
  expect(found.map(({ subject }) => subject)).toEqual(['api', 'api']);
  for (const { remedy } of found) expect(remedy).toMatch(/^an admin resumes /);
});

it('a deleted network is one problem, with its own remedy', async () => {
  const { desk, tools } = await startDesk(map);
  const deletion = { at: '2026-01-01T00:00:00.000Z', resumes: true };
  const refusal = new Refused(410, 'reading', 'the network was deleted', null);
  await desk.tools.store.write({ ...(await desk.state()), enabled: false, deletion });
  await desk.tools.store.setConfigAside('cpn0');
  desk.actual = { ...desk.actual, link: null, device: null, routes: [] };
  desk.answers = [fail(refusal)];
  // The daemon goes on requesting the map, and each request is refused.
  const { sync } = await desk.tools.store.readNotes('cpn0');
  await desk.tools.store.amendNotes('cpn0', {
    sync: { ...sync, error: refusal.message, refused: 'gone', refusal: refusal.message },
    daemonFailure: { error: refusal.message, since: deletion.at, lastSuccess: null },
  });
  expect(await problemsOf(tools)).toMatchObject([{ subject: 'network', remedy: expect.stringContaining('cpn leave') }]);
  // A token that is void is another matter.
  desk.answers = [fail(new Refused(401, 'reading', 'no', 'join again'))];
  expect((await problemsOf(tools)).map(({ subject }) => subject)).toEqual(['api', 'network']);
});

it('a taken down network shows no peers, no routes and no reachability', async () => {
  const { desk } = await startDesk(map);
  await desk.tools.store.amendNotes('cpn0', { reachability: { reachableBy: 2, witnesses: 2 } });
  expect((await readStatus(desk.tools))[0]?.reachability).not.toBeNull();
  await desk.tools.store.write({ ...(await desk.state()), enabled: false });
  desk.actual = { ...desk.actual, link: null, device: null, routes: [] };
  const [status] = await readStatus(desk.tools);
  if (status === undefined) throw new Error('there is no status');
  expect(status.reachability).toBeNull();
  const text = statusToText(status, desk.tools.now());
  expect(text).toMatch(/^cpn0 {2}down {2}network office \(7\)\nreason taken down\n/);
  expect(text).not.toMatch(/reachable|never|edge-1/);
});

it('a connector that never answered is no standby', async () => {
  const { desk } = await startDesk(map);
  desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
  const routes = async () => (await readStatus(desk.tools))[0]?.routes.map(({ via, state }) => [via, state]);
  expect(await routes()).toEqual([
    ['edge-1', 'active'],
    ['edge-2', 'never'],
  ]);
  // The daemon forces a handshake with one that was heard before, and so its table has none.
  await desk.tools.store.write({ ...(await desk.state()), failed: [{ peer: 3, back: false, heard: 1 }] });
  expect((await routes())?.[1]).toEqual(['edge-2', 'standby']);
  await desk.tools.store.write({ ...(await desk.state()), failed: [{ peer: 3, back: false }] });
  expect((await routes())?.[1]).toEqual(['edge-2', 'never']);
  await desk.tools.store.write({ ...(await desk.state()), failed: [] });
  desk.touch(3, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
  expect(await routes()).toEqual([
    ['edge-1', 'active'],
    ['edge-2', 'standby'],
  ]);
});

it('a subnet of this host within the range of the network is a note', async () => {
  const options = { ...joinedTo(map).options, allowRoutes: [map.cidr] };
  const { desk, tools } = await startDesk(map, { options });
  for (const { id } of edges)
    desk.touch(Number(id), { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
  const connected = [{ prefix: prefix('10.77.0.128/25'), link: 'wlan0' }];
  desk.actual = { ...desk.actual, underlay: { ...desk.actual.underlay, connected: connected as never } };
  const [status] = await readStatus(desk.tools);
  expect(status).toMatchObject({ state: 'up', problems: [{ code: 'subnet-inside', severity: 'note' }] });
  expect(await problemsOf(tools)).toEqual([]);
});
