import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { explainAddress } from '../../../src/app/inspect/explain.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { CommandFailed, NotJoined, Refused, Unreachable } from '../../../src/core/errors/index.ts';
import type { PacketPaths } from '../../../src/core/forward/foreign/foreign-drops.ts';
import { tunnelMark } from '../../../src/core/host-state/marks.ts';
import { settingsOf } from '../../../src/core/reconcile/plan-dns.ts';
import type { Host } from '../../../src/host/host.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { into } from '../../core/explain/samples.ts';
import { address, dialled, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt, self } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail } from '../simulated-service.ts';

it('an explanation looks up the way of the marked packets to the endpoint of the peer', async () => {
  const other = peer(2, { endpoint: dialled(2) });
  const map = mapAt('"1"', [other]);
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.service.mapReplies = [answerWith(map)];
  await reconcileNetworks(simulated.tools);
  simulated.actual = {
    ...simulated.actual,
    device: simulated.actual.device && { ...simulated.actual.device, fwmark: 0x2053 },
  };
  const host: Host = {
    ...simulated.tools.host,
    route: async (to, packet) =>
      to === other.address
        ? into('10.77.0.0/24', { source: null })
        : { link: null, why: packet?.mark === 0x2053 ? 'none' : 'blackhole' },
  };
  expect((await explainAddress({ ...simulated.tools, host }, other.address)).stop).toMatchObject({
    check: 'endpoint',
    detail: expect.stringMatching(/^peer-2 at 203\.0\.113\.2:51820: this host has no route there$/),
  });
});

it('an explanation reports that the control plane refuses the newest map', async () => {
  const other = peer(2, { endpoint: dialled(2) });
  const map = mapAt('"1"', [other]);
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.service.mapReplies = [
    answerWith(map),
    fail(new Refused(401, 'reading network 7', 'Unauthenticated', 'join again')),
    fail(new Unreachable('https://203.0.113.99', 'silent', { delivered: false, heard: false, retryAfterMs: null })),
    answerWith(map),
  ];
  const tools = { ...simulated.tools, host: { ...simulated.tools.host, route: async () => into('10.77.0.0/24') } };
  const explain = async () => (await explainAddress(tools, other.address)).checks[0];
  await reconcileNetworks(simulated.tools);
  expect(await explain()).toMatchObject({ check: 'network', ok: true });
  const refused = {
    check: 'network',
    ok: null,
    detail: expect.stringMatching(/sync refused \(token\)$/),
    remedy: 'reading network 7 was refused (401): Unauthenticated; join again',
  };
  await reconcileNetworks(simulated.tools);
  expect(await explain()).toMatchObject(refused);
  await reconcileNetworks(simulated.tools);
  expect(await explain()).toMatchObject(refused);
  expect((await simulated.tools.store.readNotes('cpn0')).sync).toMatchObject({
    error: expect.stringContaining('silent'),
  });
  await reconcileNetworks(simulated.tools);
  expect(await explain()).toMatchObject({ check: 'network', ok: true });
  expect((await simulated.tools.store.readNotes('cpn0')).sync).not.toHaveProperty('refusal');
});

const edge = peer(2, { name: 'edge', type: 'connector', endpoint: dialled(2) });
const db = peer(3, { name: 'db', endpoint: dialled(3) });
const lan = prefix('192.168.50.0/24');

/** A host that is up in these networks; their interfaces are observed as the first one. */
async function start(first: Partial<Joined> = {}, others: readonly Joined[] = [], map = mapAt('"1"', [edge, db])) {
  const simulated = await SimulatedHost.with(joinedTo(map, first));
  const { tools } = simulated;
  await passNetwork(tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  for (const state of others) await tools.store.write(state);
  const warnings: string[] = [];
  tools.warn = (text) => void warnings.push(text);
  const lookups: { readonly to: string; readonly source?: string | undefined; readonly mark?: number | undefined }[] =
    [];
  tools.host.route = async (to, packet) => {
    lookups.push({ to, ...packet });
    return into('10.77.0.0/24', { source: self.address });
  };
  const asked: PacketPaths[] = [];
  tools.host.foreignDrops = async (_, paths) => {
    asked.push(paths);
    return { forward: [], inbound: null };
  };
  const explain = (text: string) => explainAddress(tools, text);
  const checkOf = async (text: string, name: string) =>
    (await explain(text)).checks.find(({ check }) => check === name) ?? null;
  return { simulated, tools, warnings, lookups, asked, explain, checkOf };
}

/** Makes the observation of an interface fail. */
function failAt(tools: SimulatedHost['tools'], links: readonly string[]): void {
  const { observe } = tools.host;
  tools.host.observe = async (wanted) => {
    if (links.includes(wanted.link)) throw new CommandFailed(`ip link show ${wanted.link}`, 1, 'no');
    return observe(wanted);
  };
}

describe('the networks of an explanation', () => {
  const lab = mapAt('"1"', [edge], { id: 8, name: 'lab' });
  const second = joinedTo(lab, { interface: 'cpn1', createdAt: '2025-01-01T00:00:00.000Z' });

  it('are those that can be read, with a warning for each other', async () => {
    const { tools, warnings, explain } = await start();
    const stateOf = (link: string) => join(dirname(tools.store.formerPath), `${link}.json`);
    await writeFile(stateOf('cpn1'), '{', { mode: 0o600 });
    expect(await explain('10.77.0.3')).toMatchObject({ interface: 'cpn0', network: { id: 7, name: 'office' } });
    expect(warnings).toEqual([expect.stringContaining('cpn1.json is damaged')]);
    await tools.store.forget('cpn0', []);
    await expect(explain('10.77.0.3')).rejects.toThrow('cpn1.json is damaged');
    await tools.store.forget('cpn1', []);
    await expect(explain('10.77.0.3')).rejects.toBeInstanceOf(NotJoined);
  });

  it('are those that can be evaluated, and none is hidden by another one', async () => {
    const { tools, warnings, explain } = await start({}, [second]);
    failAt(tools, ['cpn1']);
    expect(await explain('10.77.0.3')).toMatchObject({ interface: 'cpn0', network: { name: 'office' } });
    expect(warnings).toEqual([expect.stringContaining('ip link show cpn1')]);
    failAt(tools, ['cpn0']);
    await expect(explain('10.77.0.3')).rejects.toBeInstanceOf(CommandFailed);
  });

  it('are searched in the order of their joins: the earlier of two with the same address is explained', async () => {
    for (const [createdAt, link] of [
      ['2025-01-01T00:00:00.000Z', 'cpn1'],
      ['2027-01-01T00:00:00.000Z', 'cpn0'],
    ] as const) {
      const { explain } = await start({}, [{ ...second, createdAt }]);
      const { interface: found, network } = await explain('10.77.0.2');
      expect([found, network?.name]).toEqual([link, link === 'cpn1' ? 'lab' : 'office']);
    }
  });
});

describe('what stops a packet at the network', () => {
  const deletion = { at: '2026-11-26T00:00:00.000Z', resumes: true };
  it.each<[string, Partial<Joined>, RegExp | null]>([
    ['nothing', {}, null],
    ['taken down', { enabled: false }, /taken down/],
    ['deleted', { enabled: false, deletion }, /deleted/],
  ])('%s', async (_, changes, expected) => {
    const { simulated, tools, checkOf } = await start();
    await tools.store.write({ ...(await simulated.state()), ...changes });
    const check = await checkOf('10.77.0.3', 'network');
    expect(check).toMatchObject({ ok: expected === null });
    if (expected !== null) expect(check?.detail).toMatch(expected);
    if (_ === 'taken down') expect(check?.detail).not.toMatch(/deleted/);
  });

  it('a map without this host stops it', async () => {
    const { simulated, tools, checkOf } = await start();
    const state = await simulated.state();
    const map = mapAt('"2"', [edge, db]);
    const others = map.peers.filter(({ id }) => id !== 1);
    const membership = { ...state.membership, map: { ...map, peers: others } };
    await tools.store.write({ ...state, membership });
    expect(await checkOf('10.77.0.3', 'network')).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/lists|listed/),
    });
  });
});

it.each([
  [true, true],
  [false, false],
])('a peer that failed stops a packet until it answers again, and %s', async (isFailing, isStopped) => {
  const { simulated, checkOf } = await start({ failed: [{ peer: 3, back: !isFailing }] });
  simulated.updatePeer(3, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  expect((await checkOf('10.77.0.3', 'handshake'))?.ok !== true).toBe(isStopped);
});

describe('the lookups of an explanation', () => {
  it('are the path there, the return path from the own address, and the path of WireGuard to the endpoint', async () => {
    const { lookups, explain } = await start();
    await explain('10.77.0.3');
    expect(lookups).toContainEqual({ to: '10.77.0.3' });
    expect(lookups).toContainEqual({ to: '10.77.0.3', source: '10.77.0.1' });
    expect(lookups.map(({ to }) => to)).toContain('203.0.113.3');
    expect(lookups).toHaveLength(3);
  });

  it('have no return path while the interface lacks the address', async () => {
    const { simulated, lookups, explain } = await start();
    const { link } = simulated.actual;
    simulated.actual = { ...simulated.actual, link: link && { ...link, addresses: [] } };
    await explain('10.77.0.3');
    expect(lookups.filter(({ source }) => source !== undefined)).toEqual([]);
  });

  it('read the reverse path filter again, for every host', async () => {
    const { tools, checkOf } = await start();
    const { observe } = tools.host;
    tools.host.observe = async (wanted) => {
      const actual = await observe(wanted);
      const read = wanted.sysctls.some((key) => key.endsWith('all.rp_filter'));
      const sysctls = Object.fromEntries(wanted.sysctls.map((key) => [key, '1']));
      return read ? { ...actual, sysctls } : actual;
    };
    expect(await checkOf('10.77.0.3', 'rp_filter')).toMatchObject({ detail: expect.stringContaining('strict') });
  });

  it('ask for replies to any client in the network with the full tunnel, whichever joined first', async () => {
    const everything = prefix('0.0.0.0/0');
    const full = joinedTo(mapAt('"1"', [edge], { id: 8, name: 'exit', routes: [everything] }), {
      interface: 'cpn1',
      createdAt: '2026-02-01T00:00:00.000Z',
      options: { ...options, allowRoutes: [everything] },
    });
    const { lookups, explain, checkOf } = await start({}, [full]);
    // In a subnet of this host, and so outside.
    expect(await checkOf('203.0.113.77', 'answers')).not.toBeNull();
    const source = '203.0.113.22';
    expect(lookups.filter((each) => each.source === source)).toEqual([
      { to: '203.0.113.77', source },
      { to: '203.0.113.77', source, mark: tunnelMark },
    ]);
    lookups.length = 0;
    await explain('2001:db8::77');
    expect(lookups).toEqual([{ to: '2001:db8::77' }]);
  });
});

describe('packet rules of other programs in an explanation', () => {
  const own = peer(1, { type: 'connector', endpoint: dialled(1) });
  const served = { ...mapAt('"1"', [db], { routes: [lan] }), peers: [own, db] };
  const enrollment = { ...joinedTo(served).enrollment, type: 'connector' as const };

  it('are read for the paths of the packet alone: by which peers dial, or those that this host forwards', async () => {
    const { asked, explain } = await start({ enrollment }, [], served);
    await explain('10.77.0.3');
    expect(asked).toMatchObject([{ forward: [], inbound: [{ port: expect.any(Number) }] }]);
    asked.length = 0;
    await explain('192.168.50.9');
    expect(asked).toMatchObject([{ forward: [{ to: '192.168.50.9/32' }, { from: '192.168.50.9/32' }], inbound: [] }]);
  });

  it('are not read for a packet that needs no such path', async () => {
    const { asked, checkOf } = await start();
    expect(await checkOf('10.77.0.3', 'handshake')).not.toBeNull();
    expect(asked).toEqual([]);
  });

  it('are unknown, and stop nothing, if they cannot be read', async () => {
    const { tools, checkOf } = await start({ enrollment }, [], served);
    tools.host.foreignDrops = async () => {
      throw new CommandFailed('nft list ruleset', 1, 'no');
    };
    expect(await checkOf('10.77.0.3', 'firewall')).toMatchObject({ ok: null });
  });

  it('are no reason for a connector whose map ended: it serves nothing', async () => {
    const now = 1_700_001_000_000;
    for (const [age, isOver] of [
      [120_000, true],
      [40_000, false],
    ] as const) {
      const { simulated, tools, checkOf } = await start({ enrollment }, [], { ...served, maxAge: 60 });
      await tools.store.write({ ...(await simulated.state()), confirmed: now - age });
      const { detail } = (await checkOf('192.168.50.9', 'firewall')) ?? { detail: '' };
      expect(detail.includes('last confirmed the map')).toBe(isOver);
    }
  });
});

describe('an explanation of a name', () => {
  const server = address('192.168.50.53');
  const routeDns = [{ route: lan, servers: [server], domains: ['corp.example'] }];
  const closed = { rules: { rules: [], requiresEnforcement: false } };

  /** A host that sends queries for corp.example to the server. */
  async function startResolving() {
    const map = mapAt('"1"', [edge, db], { routes: [lan], routeDns, ...closed });
    const started = await start({}, [], map);
    const { simulated, tools } = started;
    const own = { ...settingsOf({ servers: [], domains: [] }), servers: [server], domains: ['~corp.example'] };
    simulated.actual = { ...simulated.actual, dns: { program: 'systemd-resolved', own, others: [], isServing: false } };
    const asked: string[] = [];
    tools.host.queryDomain = async (servers, domain, source) => {
      asked.push(`${servers} ${domain} from ${source}`);
      return 'silent';
    };
    return { ...started, asked };
  }

  it('without an address follows a query to its server, by the rules for DNS', async () => {
    const { asked, explain } = await startResolving();
    const { address: found, name, dns, origin, checks, ...rest } = await explain('db.corp.example');
    expect([found, name, origin]).toEqual([null, 'db.corp.example', `the path to its DNS server ${server}`]);
    expect(dns).toMatchObject({ domain: 'corp.example', link: 'cpn0', servers: [server] });
    expect(checks.map(({ check }) => check)).toEqual(expect.arrayContaining(['domain', 'network', 'rules', 'name']));
    expect(rest).toMatchObject({
      interface: 'cpn0',
      stop: { check: 'rules', detail: expect.stringContaining('udp 53') },
    });
    expect(asked).toEqual([`${server} corp.example from 10.77.0.1`]);
  });

  it('with an address queries no server, and follows the packet', async () => {
    const { simulated, asked, explain } = await startResolving();
    simulated.dnsRecords = { 'db.corp.example': [address('10.77.0.3')] };
    const { address: found, checks } = await explain('db.corp.example');
    expect(found).toBe('10.77.0.3');
    expect(checks.map(({ check }) => check).slice(0, 3)).toEqual(['domain', 'name', 'network']);
    expect(asked).toEqual([]);
  });

  it.each([true, false])('of a peer is in the hosts file: %s', async (hosts) => {
    const { simulated, checkOf } = await start({ options: { ...options, hosts } });
    simulated.dnsRecords = { 'db.office.cpn.internal': [address('10.77.0.3')] };
    expect(await checkOf('db.office.cpn.internal', 'name')).toMatchObject({ ok: true });
    expect((await checkOf('db.office.cpn.internal', 'domain'))?.detail.endsWith('in /etc/hosts')).toBe(hosts);
  });

  it('outside has no path without an address', async () => {
    const { explain } = await startResolving();
    expect(await explain('www.example')).toMatchObject({
      ...{ address: null, origin: null, network: null, interface: null },
      checks: [{ check: 'domain' }, { check: 'name' }],
    });
  });
});
