import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { networkChecks } from '../../../src/app/doctor/check-network.ts';
import { serviceChecks } from '../../../src/app/doctor/check-service.ts';
import type { DoctorTools } from '../../../src/app/doctor/examination.ts';
import { examine } from '../../../src/app/doctor/examine.ts';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { makeIdentity } from '../../../src/core/crypto/identity.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { overhead, overheadV6 } from '../../../src/core/doctor/check-mtu.ts';
import type { Finding, FindingSubject } from '../../../src/core/doctor/finding.ts';
import { CommandFailed, DiskFailed, ForeignListener, NotOurs, Refused } from '../../../src/core/errors/index.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { resolver } from '../../../src/core/routing/kept-outside.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { address, dialled, keyPair, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { fail } from '../simulated-service.ts';
import { peerMap, startExaminedHost } from './examined-host.ts';

const lan = prefix('192.168.50.0/24');
const connector = { ...joinedTo(peerMap).enrollment, type: 'connector' as const };

async function find(tools: DoctorTools, subject: FindingSubject): Promise<readonly Finding[]> {
  return (await examine(tools)).filter((each) => each.subject === subject);
}
const verdicts = (found: readonly Finding[]) => found.map(({ checked, verdict }) => [checked, verdict]);

describe('the checks of a host', () => {
  const missing = (tool: string) => ({ tool, path: null, version: null, remedy: `apt install ${tool}` });
  const inspects = { tools: async () => [missing('nft'), missing('ping')] };
  const icmp = { host: '192.168.50.1', port: null };

  it.each<[string, Partial<Joined>, string, string]>([
    ['none', {}, 'note', 'note'],
    ['nft for a connector', { enrollment: connector }, 'problem', 'note'],
    ['ping for probes without a port', { options: { ...options, probes: [icmp] } }, 'note', 'problem'],
    ['no ping for probes of a port', { options: { ...options, probes: [{ ...icmp, port: 22 }] } }, 'note', 'note'],
  ])('need the tools of each network: %s', async (_, changes, nft, ping) => {
    const { tools } = await startExaminedHost(peerMap, {}, inspects);
    await tools.store.write(joinedTo(peerMap, { interface: 'cpn1', ...changes }));
    expect(verdicts(await find(tools, 'tools'))).toEqual([
      ['nft', nft],
      ['ping', ping],
    ]);
  });

  it('examine the folders, and both files of each network, readable or not', async () => {
    const asked: string[] = [];
    const { tools } = await startExaminedHost(
      peerMap,
      {},
      {
        file: async (path) => {
          asked.push(path);
          return null;
        },
      },
    );
    await writeFile(join(dirname(tools.store.formerPath), 'cpn1.json'), '{', { mode: 0o600 });
    await examine(tools);
    const files = ['cpn0', 'cpn1'].flatMap((link) => [tools.store.configPath(link), `/var/lib/cpn/${link}.json`]);
    expect(asked).toEqual(['/etc/wireguard', '/var/lib/cpn', '/run/cpn', ...files]);
  });

  it('note damaged states of joined networks, and networks that were left', async () => {
    const { tools } = await startExaminedHost();
    const { membership, ...state } = joinedTo(peerMap);
    await tools.store.writeFormer({
      memberships: [
        {
          ...{ interface: 'cpn9', leftAt: '2026-01-01T00:00:00.000Z', service: state.service, features: null },
          ...{ network: { id: 8, name: 'lab' }, peer: { id: 1, name: 'peer-1' }, publicKey: keyPair(1).publicKey },
          ...{ identity: makeIdentity(new Uint8Array(32)), keySerial: 0, accessToken: new Secret('cpp_x') },
        },
      ],
      folders: [],
    });
    const store = { ...tools.store, damaged: new Set(['cpn0', 'cpn5']) };
    const found = await find({ ...tools, store }, 'state');
    expect(verdicts(found)).toEqual([
      ['the state of cpn0', 'note'],
      ['network lab, left as cpn9', 'note'],
    ]);
    expect(found[1]?.found).toBe('peer-1 is still in it');
  });

  it.each([
    new DiskFailed('read', '/var/lib/cpn', { name: 'Error', message: '', code: 'EACCES', errno: -13 }),
    new NotOurs('the folder of user 7', '/var/lib/cpn', 'check who made it'),
  ])('report why the states cannot be listed, and examine the rest: %s', async (error) => {
    const { tools } = await startExaminedHost();
    tools.store.list = () => Promise.reject(error);
    const found = await examine(tools);
    expect(found.filter(({ subject }) => subject === 'state')).toMatchObject([
      { verdict: 'problem', checked: 'the states of networks', found: error.message, remedy: 'sudo cpn doctor' },
    ]);
    expect(found.map(({ subject }) => subject)).toEqual(expect.arrayContaining(['tools', 'kernel', 'disk']));
  });

  it('read which process is the daemon, and belong to no network', async () => {
    const asked: string[] = [];
    const { tools } = await startExaminedHost(
      peerMap,
      {},
      {
        holder: async (path) => {
          asked.push(path);
          return { pid: 7, alive: true };
        },
      },
    );
    const found = await examine(tools);
    expect(new Set(asked)).toEqual(new Set(['/run/cpn/daemon.pid']));
    const ofHost = found.filter(({ subject }) => ['tools', 'kernel', 'privileges', 'disk', 'state'].includes(subject));
    expect(new Set(ofHost.map((each) => each.interface))).toEqual(new Set([null]));
  });

  it('have the last part of the message of a failed check as their remedy', async () => {
    const { tools } = await startExaminedHost();
    tools.host.observe = () => Promise.reject(new NotOurs('the interface', 'cpn0', 'look; then; remove it'));
    expect(await find(tools, 'network')).toMatchObject([
      { found: expect.stringMatching(/not made by cpn; look; then$/), remedy: 'remove it' },
    ]);
  });
});

describe('the check of the MTU', () => {
  it('reports one that exceeds the underlay with encapsulation, and none that fits exactly', async () => {
    const { simulated, tools } = await startExaminedHost();
    const check = async (underlayMtu: number) => {
      simulated.actual = { ...simulated.actual, underlay: { ...simulated.actual.underlay, underlayMtu } };
      return find(tools, 'mtu');
    };
    const mtu = simulated.actual.link?.mtu ?? 0;
    expect(await check(mtu + overhead - 1)).toMatchObject([
      {
        verdict: 'problem',
        checked: 'the MTU of cpn0',
        remedy: `cpn set cpn0 --mtu ${mtu + overhead - 1 - overheadV6}`,
      },
    ]);
    expect((await check(mtu + overhead)).filter(({ verdict }) => verdict === 'problem')).toEqual([]);
  });

  it('sends the largest packets to recently active peers alone, with the encapsulation of their family', async () => {
    const largest = async (host: string, age: number) => {
      const { simulated, tools } = await startExaminedHost();
      const latestHandshake = Math.floor(simulated.tools.now().getTime() / 1000) - age;
      simulated.updatePeer(2, { latestHandshake, endpoint: { host: address(host), port: 51_820 } });
      const sizes = new Map<string, number>();
      simulated.onEcho = (to, bytes) => {
        sizes.set(to, Math.max(bytes, sizes.get(to) ?? 0));
        return true;
      };
      simulated.widePaths.set(address(host), 9000);
      await find(tools, 'mtu');
      return [...sizes].toSorted();
    };
    expect(await largest('203.0.113.2', 0)).toEqual([
      ['10.77.0.2', 1420],
      ['203.0.113.2', 1420 + overhead],
    ]);
    expect(await largest('2001:db8::2', 0)).toContainEqual(['2001:db8::2', 1420 + overheadV6]);
    expect(await largest('203.0.113.2', 3600)).toEqual([]);
  });
});

describe('the checks of a network', () => {
  const withEndpoint = { ...peerMap, peers: [peer(1, { endpoint: dialled(1) }), ...peerMap.peers.slice(1)] };

  it.each([
    [peerMap, false],
    [withEndpoint, true],
  ])('read packet rules of other programs for its listen port only if peers dial it', async (listed, reads) => {
    const { tools } = await startExaminedHost(listed);
    let isRead = false;
    tools.host.foreignDrops = async () => {
      isRead = true;
      return { forward: [], inbound: null };
    };
    const found = await find(tools, 'ports');
    expect([isRead, found.some(({ checked }) => checked.includes('packet rules'))]).toEqual([reads, reads]);
  });

  it('examine forwarding while it is up, and report rules that could not be read', async () => {
    const served = { ...peerMap, routes: [lan], peers: [peer(1, { type: 'connector' }), ...peerMap.peers.slice(1)] };
    const { simulated, tools } = await startExaminedHost(served, { enrollment: connector });
    const unread = { forward: [{ kind: 'legacy' as const }], inbound: [] };
    simulated.drops = { forward: [], inbound: null, unread };
    const rules = 'packet rules of other programs for packets that cpn0 forwards';
    expect(verdicts(await find(tools, 'forwarding'))).toContainEqual([rules, 'note']);
    await tools.store.write({ ...(await simulated.state()), enabled: false });
    expect(await find(tools, 'forwarding')).toEqual([]);
  });

  it('examine the routes to endpoints only while it is up', async () => {
    const { simulated, tools } = await startExaminedHost();
    simulated.sourceAddressTo = () => null;
    const endpoints = async () => (await find(tools, 'network')).filter(({ checked }) => checked.includes('endpoints'));
    expect(await endpoints()).toMatchObject([{ verdict: 'note', found: expect.stringContaining('203.0.113.2') }]);
    await tools.store.write({ ...(await simulated.state()), enabled: false });
    expect(await endpoints()).toEqual([]);
  });

  it('report the age of its key, and leave a rotation to the problems', async () => {
    const { simulated, tools } = await startExaminedHost();
    expect(await find(tools, 'key')).toMatchObject([{ verdict: 'ok', found: expect.stringContaining('2023-11-01') }]);
    const begun = { begunAt: '2026-01-01T00:00:00.000Z', witnesses: [], proof: null, wayBack: null };
    const rotation = { ...begun, phase: 'announcing' as const, keyPair: keyPair(9) };
    await tools.store.write({ ...(await simulated.state()), rotation });
    expect(await find(tools, 'key')).toMatchObject([{ verdict: 'note', found: expect.stringContaining('incomplete') }]);
  });

  it('query the resolvers that are kept outside, and would be behind an accepted route', async () => {
    const { tools } = await startExaminedHost();
    const evaluation = await evaluateNetwork(tools, (await tools.store.read('cpn0')) as Joined);
    const keptOutside = [
      { address: address('192.168.50.53'), what: resolver },
      { address: address('192.168.50.54'), what: 'an SSH client' },
      { address: address('198.51.100.53'), what: resolver },
    ];
    const desired = { ...evaluation.desired, keptOutside, routes: [prefix('0.0.0.0/0'), lan] };
    const asked: string[] = [];
    tools.host.answersQuery = async (to) => asked.push(to) > 0;
    const checks = networkChecks.filter(({ subject }) => subject === 'dns');
    await Promise.all(checks.map((each) => each.examine(tools, { ...evaluation, desired })));
    expect(asked).toEqual(['192.168.50.53']);
  });
});

describe('the checks of the control plane', () => {
  const inService = (changes: Partial<Joined['service']>): Partial<Joined> => ({
    service: { ...joinedTo(peerMap).service, ...changes },
  });
  const api = async (tools: DoctorTools) => find(tools, 'api');

  it('report how the requests of a daemon fail only while it runs', async () => {
    for (const alive of [true, false]) {
      const { tools } = await startExaminedHost(peerMap, {}, { holder: async () => ({ pid: 7, alive }) });
      const since = '2023-11-14T00:00:00.000Z';
      await tools.store.amendNotes('cpn0', { daemonFailure: { error: 'no route', since, lastSuccess: null } });
      const ofDaemon = (await find(tools, 'daemon')).filter(({ checked }) => checked.includes('by the daemon'));
      expect(verdicts(ofDaemon)).toEqual(alive ? [['the last sync of cpn0 by the daemon', 'problem']] : []);
    }
  });

  it('compare the clocks halfway between request and reply', async () => {
    const { tools } = await startExaminedHost();
    const now = tools.now().getTime() / 1000;
    tools.probeService = async () => ({ date: now + 65, tookMs: 130_000 });
    const byDate = (await find(tools, 'clock')).filter(({ checked }) => checked.includes('by the Date'));
    expect(byDate).toMatchObject([{ verdict: 'ok' }]);
  });

  it('compare the clock with the last sync', async () => {
    const { tools } = await startExaminedHost();
    const sync = { mode: 'poll', error: null, refused: null, lastSuccess: '2030-01-01T00:00:00.000Z' } as const;
    await tools.store.amendNotes('cpn0', { sync });
    expect(await find(tools, 'clock')).toContainEqual(
      expect.objectContaining({ verdict: 'problem', found: expect.stringContaining('the last sync of cpn0') }),
    );
  });

  it('note that the program which listens on loopback is not visible, and who it is otherwise', async () => {
    const { tools } = await startExaminedHost();
    const date = tools.now().getTime() / 1000;
    const probed = async (listener: string | null | undefined) => {
      tools.probeService = async () => ({ date, tookMs: 3, ...(listener !== undefined && { listener }) });
      return (await api(tools)).map(({ verdict, found }) => `${verdict}: ${found}`).join('\n');
    };
    expect(await probed(null)).toMatch(/note: is not checked: no socket/);
    expect(await probed(undefined)).not.toMatch(/is not checked|from a program/);
    expect(await probed('user cpn (7)')).toMatch(/from a program of user cpn \(7\)/);
  });

  it('report a listener that is not trusted, with how to confirm it', async () => {
    const { tools } = await startExaminedHost();
    const foreign = { problem: 'user 8 listens there', remedy: null } as ConstructorParameters<
      typeof ForeignListener
    >[1];
    tools.probeService = () => Promise.reject(new ForeignListener('http://127.0.0.1:8787', foreign));
    expect(await api(tools)).toMatchObject([
      {
        found: 'is not trusted: user 8 listens there; nothing was sent',
        remedy: expect.stringContaining('cpn set --api http://127.0.0.1:8787'),
      },
    ]);
  });

  it.each([
    [undefined, 'problem'],
    [{ at: '2026-11-26T00:00:00.000Z', resumes: true }, 'note'],
  ])('note a refused token only for a network that was deleted: %j', async (deletion, verdict) => {
    const { simulated, tools } = await startExaminedHost();
    await tools.store.write({ ...(await simulated.state()), ...(deletion && { enabled: false, deletion }) });
    for (const status of [404, 410]) {
      simulated.service.mapReplies = [fail(new Refused(status, 'reading network 7', 'no', null))];
      const found = (await api(tools)).filter(({ checked }) => checked.includes('token'));
      expect(found.map((each) => each.verdict)).toEqual([verdict]);
    }
  });

  it('note a proxy that only the environment names, unless it was declined', async () => {
    const named = { url: 'http://198.51.100.9:3128', from: 'HTTPS_PROXY' };
    for (const [proxy, count] of [
      [undefined, 1],
      ['none', 0],
    ] as const) {
      const { tools } = await startExaminedHost(peerMap, inService(proxy === undefined ? {} : { proxy }));
      tools.environmentProxy = () => named as never;
      expect((await api(tools)).filter(({ checked }) => checked === 'the proxy of cpn0')).toHaveLength(count);
    }
  });

  it('report that it is behind a route of its network, while that is up', async () => {
    const { tools } = await startExaminedHost(peerMap, inService({ url: 'https://192.168.50.9' }));
    const evaluation = await evaluateNetwork(tools, (await tools.store.read('cpn0')) as Joined);
    const desired = { ...evaluation.desired, routes: [lan], allowed: [] };
    const behind = async (enabled: boolean) => {
      const examined = { ...evaluation, state: { ...evaluation.state, enabled }, desired };
      const found = await Promise.all(serviceChecks.map((each) => each.examine(tools, examined)));
      return found.flat().filter(({ remedy }) => remedy?.includes('outside the routes'));
    };
    expect(await behind(true)).toMatchObject([{ verdict: 'problem', checked: 'https://192.168.50.9' }]);
    expect(await behind(false)).toEqual([]);
  });

  it.each([
    ['https://cp.example.net', 'cp.example.net', /; 198\.51\.100\.9 from an earlier query is used$/],
    [
      'http://cp.example.net',
      'cp.example.net',
      /; 198\.51\.100\.9 from an earlier query is used until a resolver answers$/,
    ],
    ['https://cp.example.net', 'edge.example.net', /^no resolver has an address$/],
  ])('report a name without an address, and which one is used meanwhile: %s, %s', async (url, name, expected) => {
    const named = mapAt('"1"', [peer(2, { endpoint: parseEndpoint('edge.example.net:51820') })], { routes: [] });
    const { simulated, tools } = await startExaminedHost(named, inService({ url }));
    const resolved = { 'cp.example.net': [address('198.51.100.9')] };
    await tools.store.write({ ...(await simulated.state()), resolved });
    const found = (await find(tools, 'dns')).filter(({ checked }) => checked === `the address of ${name}`);
    expect(found.map((each) => each.found)).toEqual([expect.stringMatching(expected)]);
  });

  it('do not end the others where packet rules cannot be read', async () => {
    const served = { ...peerMap, peers: [peer(1, { endpoint: dialled(1) }), ...peerMap.peers.slice(1)] };
    const { tools } = await startExaminedHost(served);
    tools.host.foreignDrops = () => Promise.reject(new CommandFailed('nft list ruleset', 1, 'no'));
    expect((await api(tools)).map(({ verdict }) => verdict)).toEqual(['ok', 'ok']);
  });
});
