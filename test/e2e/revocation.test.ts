/** How soon, and how surely, a peer that is removed, suspended or expired loses what it reached. */
import { readFile, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withDatabase } from '../control-plane/databases.ts';
import { type SleepingDaemon, startSleepingDaemon } from '../faults/sleeping-daemon.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, startOffice, status } from './office.ts';

let office: Office;

beforeAll(async () => {
  office = await startOffice();
}, 60_000);

afterAll(() => office?.lab.stop());

const admin = async (...args: string[]) => (await office.controlPlane.cpn(args)).stdout;

/** The revision of the map that a host applied last. */
async function revisionOf(host: Host): Promise<string> {
  return JSON.parse(await readFile(path(host.stateDir, 'cpn0.json'), 'utf8')).membership.map.revision;
}

/** The keys of the peers that WireGuard has on a host. */
async function peersOf(host: Host): Promise<readonly string[]> {
  const { stdout } = await host.exec(['wg', 'show', 'cpn0', 'peers']);
  return stdout.split('\n').filter((line) => line !== '');
}

describe('in a network of two', () => {
  let server: Host;
  let laptop: Host;
  let daemon: Daemon;

  beforeAll(async () => {
    server = await office.lab.addHost('server', { address: '203.0.113.11/24' });
    laptop = await office.lab.addHost('laptop', { address: '203.0.113.12/24' });
    await join(office, server, '--endpoint', '203.0.113.11:51820');
    await join(office, laptop);
    daemon = await startDaemon(server, '--interval', '3600');
    await eventually('the server has the laptop', async () => (await peersOf(server)).length === 1);
  }, 60_000);

  it('the command that suspends a peer names the host whose daemon is stopped, until that has applied it', async () => {
    await daemon.stop();
    const suspend = ['peer', 'suspend', 'office', 'laptop', '--yes'];
    const { stderr } = await office.controlPlane.cpn([...suspend, '--wait', '1']);
    expect(stderr).toMatch(/hosts that have not applied it: server \(last request \d+ s ago\); they may still reach/);
    const removals = async () => JSON.parse(await admin('api', 'GET', '/api/networks/1/removals')).data.pending;
    expect(await removals()).toMatchObject([{ name: 'server', acknowledged_revision: null }]);
    daemon = await startDaemon(server, '--interval', '3600');
    await eventually('the server has applied it', async () => (await removals()).length === 0);
    expect(await peersOf(server)).toEqual([]);
    // With the daemon up the command itself waits for it.
    await admin('peer', 'resume', 'office', 'laptop');
    await eventually('the server has the laptop', async () => (await peersOf(server)).length === 1);
    expect((await office.controlPlane.cpn(suspend)).stderr).toContain('all hosts have applied it');
    expect(await peersOf(server)).toEqual([]);
  });

  it.each<[string, string[]]>([
    ['a suspension', ['peer', 'suspend', '--yes', 'office', 'laptop']],
    ['a removal', ['peer', 'remove', 'office', 'laptop', '--yes']],
  ])('%s reaches the other host by one reply', async (_, command) => {
    await admin('peer', 'resume', 'office', 'laptop');
    await eventually('the server has the laptop', async () => (await peersOf(server)).length === 1);
    const mark = daemon.mark();
    await admin(...command);
    await eventually('the server has dropped it', async () => (await peersOf(server)).length === 0);
    expect(daemon.since(mark).filter(({ level }) => level > 30)).toEqual([]);
  });
});

describe('a host that moves to another uplink while its old one is dead', () => {
  let host: Host;
  let daemon: Daemon | undefined;
  let keyOfGuest: string;
  const hasGuest = async () => (await peersOf(host)).includes(keyOfGuest);
  /** TCP keepalive after 5 s, as ss(8) shows it. */
  const probed = /timer:\(keepalive,(?:[0-5](?:\.\d+)?sec|\d+ms)/;
  const ip = (...args: string[]) => host.exec(['ip', ...args]);

  beforeAll(async () => {
    const { lab } = office;
    const router = await lab.addHost('router', { address: '203.0.113.254/24' });
    await router.exec(['sysctl', '-w', 'net.ipv4.ip_forward=1', 'net.ipv4.conf.all.proxy_arp=1']);
    const { host: service } = office.controlPlane;
    await service.exec(['ip', 'route', 'add', '198.18.0.0/16', 'via', '203.0.113.254']);
    const one = await lab.addLan(router, '198.18.1.1/24');
    const two = await lab.addLan(router, '198.18.2.1/24');
    host = await lab.addHost('roaming', { on: one.segment, address: '198.18.1.31/24' });
    await host.plug(two.segment, { address: '198.18.2.31/24' });
    const guest = await lab.addHost('guest', { address: '203.0.113.13/24' });
    await join(office, guest, '--endpoint', '203.0.113.13:51820');
    keyOfGuest = (await status(guest)).public_key;
  }, 60_000);

  const kinds: [string, readonly string[], readonly string[]][] = [
    [
      'by a policy rule and a table',
      ['route add default via 198.18.1.1 table 100', 'rule add pref 100 lookup 100'],
      ['route replace default via 198.18.2.1 table 100'],
    ],
    [
      'by a default route without a gateway',
      ['route add default dev eth0 metric 100', 'route add default dev eth1 metric 200'],
      ['route add default dev eth0 metric 20100', 'route del default dev eth0 metric 100'],
    ],
  ];
  it.each(kinds)('drops a suspended peer: %s', async (_, before, after) => {
    for (const line of before) await ip(...line.split(' '));
    if (daemon === undefined) await join(office, host, '--no-accept-routes');
    daemon = await startDaemon(host, '--interval', '3600');
    await admin('peer', 'resume', 'office', 'guest');
    await eventually('it has the guest', hasGuest);
    const sockets = ['ss', '-Htno', 'state', 'established', 'src', '198.18.1.31', 'dst', '203.0.113.1'];
    await eventually('a request waits', async () => probed.test((await host.exec(sockets)).stdout));
    await host.links[0]?.cut();
    for (const line of after) await ip(...line.split(' '));
    await admin('peer', 'suspend', 'office', 'guest', '--yes', '--wait', '0');
    // A request that waits on the dead uplink ends after 50 s.
    await eventually('it has dropped the guest', async () => !(await hasGuest()), { timeoutMs: 25_000 });
    await daemon.stop();
    await host.links[0]?.restore();
    const undo = 'ip rule del pref 100; ip route flush table 100; while ip route del default; do :; done';
    await host.exec(['sh', '-c', undo], { allowFailure: true });
  });
});

describe('a connector', () => {
  let edge: Host;
  let one: Host;
  let other: Host;
  /** Another connector, with a LAN of its own. */
  let hub: Host;
  let daemon: SleepingDaemon;
  let addressOf: Record<string, string>;
  let keyOfOne: string;

  beforeAll(async () => {
    const { lab } = office;
    edge = await lab.addHost('edge', { address: '203.0.113.21/24' });
    one = await lab.addHost('one', { address: '203.0.113.22/24' });
    other = await lab.addHost('other', { address: '203.0.113.23/24' });
    hub = await lab.addHost('hub', { address: '203.0.113.24/24' });
    await lab.addLan(hub, '192.168.60.1/24');
    addressOf = {
      edge: (await join(office, edge, '--type', 'connector', '--endpoint', '203.0.113.21:51820')).address,
      one: (await join(office, one)).address,
      other: (await join(office, other)).address,
      hub: (await join(office, hub, '--type', 'connector', '--endpoint', '203.0.113.24:51820')).address,
    };
    await admin('network', 'update', 'office', '--add-route', '192.168.60.0/24');
    await admin('peer', 'update', 'office', 'edge', '--route', '192.168.50.0/24');
    await hub.cpn(['reconcile']);
    // Else it gives what leaves its LAN its own address.
    await hub.exec(['nft', 'delete', 'table', 'inet', 'cpn_cpn0']);
    await one.cpn(['reconcile']);
    keyOfOne = (await status(one)).public_key;
    daemon = await startSleepingDaemon(edge, '--interval', '3600');
    await eventually('both meet through the connector', async () => reaches(one, 'other'));
  }, 120_000);

  const reaches = async (host: Host, to: string, { waitMs }: { waitMs: number } = patiently) =>
    (await host.ping(addressOf[to] ?? '', { waitMs })).received > 0;
  /** A session exists already: an answer comes at once, or never. */
  const reachesAtOnce = (host: Host, to: string) => reaches(host, to, { waitMs: 1000 });
  /** WireGuard finds out after 15 s that a session is of no use. */
  const renewSession = async (host: Host) => {
    await host.cpn(['down', 'cpn0']);
    await host.cpn(['up', 'cpn0']);
  };
  const hubReaches = async (source: string, { waitMs }: { waitMs: number }) => {
    const ping = ['ping', '-n', '-c', '1', '-W', String(waitMs / 1000), '-I', source, addressOf.edge ?? ''];
    return (await hub.exec(ping, { allowFailure: true })).exitCode === 0;
  };
  const setsOf = async () => (await edge.exec(['nft', 'list', 'table', 'inet', 'cpn_cpn0'])).stdout;
  const expire = (name: string, at: number) =>
    admin('peer', 'update', 'office', name, '--expires', new Date(at).toISOString());

  it('goes on to relay a peer that has not expired, though its wall clock is set a year ahead', async () => {
    await expire('one', Date.now() + 30 * 86_400_000);
    await eventually('the deadline is set', async () => /timeout (30d|29d)/.test(await setsOf()));
    await daemon.sleep(400 * 86_400);
    const before = await revisionOf(edge);
    await admin('network', 'update', 'office', '--description', 'changed');
    await eventually('a pass applies the change', async () => (await revisionOf(edge)) !== before);
    expect(await peersOf(edge)).toContain(keyOfOne);
    expect(await reachesAtOnce(one, 'other')).toBe(true);
    await daemon.sleep(0);
  });

  it('sets the deadlines again that a saved ruleset restored as they were when it was saved', async () => {
    const saved = (await setsOf()).replace(/timeout \S+ expires [^ ,}]+/g, 'timeout 60d');
    const file = path(edge.folder, 'saved.nft');
    await writeFile(file, `delete table inet cpn_cpn0\n${saved}`);
    await edge.exec(['nft', '-f', file]);
    await eventually('they are right again', async () => /timeout (30d|29d)/.test(await setsOf()));
  });

  it('lets expired peers go no further once its daemon is dead, nor what is behind them, and relays all others', async () => {
    const sources = [addressOf.hub ?? '', '192.168.60.1'];
    for (const source of sources) expect(await hubReaches(source, patiently)).toBe(true);
    const end = Date.now() + 12_000;
    await Promise.all(['hub', 'one'].map((name) => expire(name, end)));
    await eventually('the deadlines are set', async () => {
      const sets = await setsOf();
      return [addressOf.one, '192.168.60.0/24'].every((each) => sets.includes(`${each} timeout 1`));
    });
    for (const source of sources) expect(await hubReaches(source, { waitMs: 1000 })).toBe(true);
    daemon.daemon.process.signal('SIGKILL');
    expect(await reachesAtOnce(one, 'other')).toBe(true);
    await eventually('the peer is cut off', async () => !(await reachesAtOnce(one, 'other')));
    for (const source of sources) expect(await hubReaches(source, { waitMs: 1000 })).toBe(false);
    // WireGuard on the connector still has it.
    expect(await peersOf(edge)).toContain(keyOfOne);
    expect(await reachesAtOnce(one, 'edge')).toBe(false);
    expect(await reachesAtOnce(other, 'one')).toBe(false);
    expect(await reachesAtOnce(other, 'edge')).toBe(true);
    await edge.cpn(['reconcile']);
    expect(await peersOf(edge)).not.toContain(keyOfOne);
    await admin('peer', 'resume', 'office', 'one', '--expires', 'never');
    await edge.cpn(['reconcile']);
    await renewSession(one);
    await eventually('it is relayed again', () => reaches(one, 'other'));
  });

  it('relays nothing past the longest age of its map with its daemon dead, keeps its own tunnel, and says so', async () => {
    await admin('network', 'update', 'office', '--max-age', '5m');
    // A shorter one than people may choose.
    await withDatabase(path(office.controlPlane.host.folder, 'data'), (db) =>
      db.updateTable('networks').set({ map_max_age_seconds: 12 }).execute(),
    );
    await admin('network', 'update', 'office', '--description', 'short');
    await edge.cpn(['reconcile']);
    expect(await setsOf()).toMatch(/set valid \{[^}]*timeout 1[0-2]s/s);
    expect(await reachesAtOnce(one, 'other')).toBe(true);
    await eventually('nothing is relayed', async () => !(await reachesAtOnce(one, 'other')));
    expect(await reachesAtOnce(one, 'edge')).toBe(true);
    expect(await reachesAtOnce(other, 'edge')).toBe(true);
    const late = await status(edge);
    expect([late.state, Date.parse(late.map_valid_until) < Date.now()]).toEqual(['degraded', true]);
    expect(late.warnings).toContainEqual(expect.stringContaining('relays and serves nothing until it confirms it'));
    const examined = await edge.cpn(['doctor'], { allowFailure: true });
    expect(examined.stdout).toContain('relays and serves nothing until it confirms it');
    // Nor after it came up from what it knows.
    await edge.cpn(['down', 'cpn0']);
    await edge.cpn(['up', 'cpn0']);
    await Promise.all([one, other].map(renewSession));
    await eventually('one is back', () => reaches(one, 'edge'));
    await eventually('the other is back', () => reaches(other, 'edge'));
    expect(await reachesAtOnce(one, 'other')).toBe(false);
    await edge.cpn(['reconcile']);
    expect(await reachesAtOnce(one, 'other')).toBe(true);
    await admin('network', 'update', 'office', '--max-age', 'off');
    await edge.cpn(['reconcile']);
    expect(await setsOf()).not.toContain('set valid');
    expect((await status(edge)).map_valid_until).toBeUndefined();
  });

  it('is passed over by its peers once its map is out of date, though it keeps its tunnel', async () => {
    await admin('peer', 'resume', 'office', 'hub', '--expires', 'never');
    const { public_key: keyOfHub } = await status(hub);
    await admin('network', 'update', 'office', '--max-age', '5m');
    await withDatabase(path(office.controlPlane.host.folder, 'data'), (db) =>
      db.updateTable('networks').set({ map_max_age_seconds: 20 }).execute(),
    );
    await admin('network', 'update', 'office', '--description', 'shorter');
    await edge.cpn(['reconcile']);
    expect(await setsOf()).toMatch(/set valid \{[^}]*timeout (20|1\d)s/s);
    // The other connector has a map for longer.
    await admin('network', 'update', 'office', '--max-age', '5m');
    for (const host of [hub, other]) await host.cpn(['reconcile']);
    const member = await startDaemon(one, '--interval', '3600');
    const rangeOf = async (key: string) => {
      const { stdout } = await one.exec(['wg', 'show', 'cpn0', 'allowed-ips']);
      return stdout.split('\n').some((line) => line.startsWith(key) && line.includes('10.77.0.0/24'));
    };
    await eventually('the connector relays', async () => (await reaches(one, 'other')) && !(await rangeOf(keyOfHub)));
    await eventually('another one has taken over', () => rangeOf(keyOfHub));
    expect(await reaches(one, 'other')).toBe(true);
    expect(await reachesAtOnce(one, 'edge')).toBe(true);
    // Its tunnel goes on to answer pings, which is no reason to go back.
    expect(
      await edge.exec(['nft', 'list', 'set', 'inet', 'cpn_cpn0', 'valid']).then(({ stdout }) => stdout),
    ).not.toMatch(/expires/);
    expect(await rangeOf(keyOfHub)).toBe(true);
    await edge.cpn(['reconcile']);
    await member.stop();
  });
});
