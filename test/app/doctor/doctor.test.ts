import { describe, expect, it } from 'vitest';
import { type Diagnosis, examine } from '../../../src/app/doctor/examine.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import {
  BadReply,
  DiskFailed,
  Intercepted,
  MissingTool,
  Refused,
  Unreachable,
} from '../../../src/core/errors/index.ts';
import { nameUnderlay } from '../../../src/core/health/path-mtu.ts';
import type { Address } from '../../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import type { Certificate } from '../../../src/core/tls/certificate.ts';
import { options, peer } from '../../core/samples.ts';
import { mapAt } from '../joined-state.ts';
import { answerWith, fail } from '../simulated-service.ts';
import { peerMap, startExaminedHost } from './examined-host.ts';

const map = peerMap;

it('a host that expires within days is a note, with what to do', async () => {
  const expiresAt = 1_700_000_000_000 + 86_400_000;
  const { tools } = await startExaminedHost({
    ...map,
    peers: map.peers.map((each) => (each.id === 1 ? { ...each, expiresAt } : each)),
  });
  const found = await examine(tools);
  expect(problemsOf(found)).toEqual([]);
  expect(found).toContainEqual(
    expect.objectContaining({
      ...{ subject: 'network', verdict: 'note' },
      checked: 'the expiry of this host in office',
      found: expect.stringContaining('expires within a day'),
      remedy: expect.stringMatching(/cpn peer update \d+ 1 --expires 90d/),
    }),
  );
});

const problemsOf = (found: readonly Diagnosis[]) => found.filter(({ verdict }) => verdict === 'problem');

describe('a check-up', () => {
  it('finds no problem where there is none, and leaves everything as it is', async () => {
    const { simulated, tools } = await startExaminedHost();
    const before = await simulated.state();
    simulated.steps.length = 0;
    expect(problemsOf(await examine(tools))).toEqual([]);
    expect([
      simulated.steps,
      simulated.service.withdrawn,
      simulated.service.announcedTags,
      await simulated.state(),
    ]).toEqual([[], [], [], before]);
  });

  it('continues after a check that fails, and reports its error as a problem', async () => {
    const missing = () => {
      throw new MissingTool('ping', 'install it: apt install iputils-ping');
    };
    const { simulated, tools } = await startExaminedHost();
    simulated.onEcho = missing;
    tools.host.observe = async () => {
      throw new DiskFailed('read', '/proc/net/tcp', { name: 'Error', message: '', code: 'EACCES', errno: -13 });
    };
    const found = await examine(tools);
    expect(problemsOf(found)).toMatchObject([
      { subject: 'network', interface: 'cpn0', remedy: expect.stringContaining('run as root') },
    ]);
    expect(found.map(({ subject }) => subject)).toContain('disk');
    const { simulated: other, tools: without } = await startExaminedHost();
    other.onEcho = missing;
    expect(problemsOf(await examine(without))).toMatchObject([
      { subject: 'mtu', found: 'ping was not found on this host', remedy: 'install it: apt install iputils-ping' },
    ]);
  });

  it('by a user who may not read a state recommends no more than another user', async () => {
    const { tools } = await startExaminedHost();
    const error = new DiskFailed('read', '/x', { name: 'Error', message: '', code: 'EACCES', errno: -13 });
    tools.store.list = async () => ({ states: [], unreadable: [{ interface: 'cpn0', error }] });
    expect(problemsOf(await examine(tools))).toEqual([
      expect.objectContaining({ subject: 'state', remedy: 'sudo cpn doctor' }),
    ]);
  });

  it('notes what cannot be examined on this kind of host, and does not examine it', async () => {
    const unexpected = async () => {
      throw new Error('unexpected call');
    };
    const left = ['kernel', 'managers', 'ports', 'mtu'] as const;
    const kind = { unexamined: new Set(left), kernel: unexpected, managers: unexpected, udpPorts: unexpected };
    const { simulated, tools } = await startExaminedHost(map, {}, kind);
    simulated.onEcho = unexpected;
    const found = await examine(tools);
    expect(problemsOf(found)).toEqual([]);
    for (const subject of left) {
      expect(found.filter((each) => each.subject === subject)).toMatchObject([
        { verdict: 'note', found: 'is not examined on this kind of host', interface: null },
      ]);
    }
  });

  it('reports an unreachable control plane, a refused token and a wrong clock', async () => {
    const { simulated, tools } = await startExaminedHost();
    const out = new Unreachable('https://x', 'connection refused', {
      delivered: false,
      heard: false,
      retryAfterMs: null,
    });
    const cut = async () => {
      throw out;
    };
    expect(problemsOf(await examine({ ...tools, probeService: cut }))).toMatchObject([
      { subject: 'api', found: 'is unreachable: connection refused' },
    ]);
    const remedyOf = async (error: Unreachable) => {
      const found = await examine({ ...tools, probeService: async () => Promise.reject(error) });
      return problemsOf(found)[0]?.remedy;
    };
    const heard = { delivered: false, heard: true, retryAfterMs: null };
    const remedy = 'check its address and port, and that it runs';
    expect(await remedyOf(new Unreachable('http://x', 'ECONNREFUSED', { ...heard, remedy }))).toBe(remedy);
    expect(await remedyOf(new Unreachable('https://x', 'it answered 500', heard))).toMatch(/^curl -v https/);
    simulated.service.mapReplies = [fail(new Refused(401, 'reading', 'no', 'join again'))];
    expect(problemsOf(await examine(tools))).toMatchObject([
      { subject: 'api', remedy: expect.stringContaining('ask an admin') },
    ]);
    const suspended = 'this peer is suspended; an admin resumes it with "cpn peer resume"';
    simulated.service.mapReplies = [fail(new Refused(403, 'reading', suspended, null))];
    expect(problemsOf(await examine(tools))).toMatchObject([
      {
        subject: 'api',
        found: 'reading was refused (403): this peer is suspended',
        remedy: 'an admin resumes it with "cpn peer resume"',
      },
    ]);
    simulated.service.mapReplies = [fail(new BadReply('https://x', 'is not JSON', 'look'))];
    expect(problemsOf(await examine(tools))).toMatchObject([
      { subject: 'api', remedy: expect.stringContaining('later') },
    ]);
    simulated.service.mapReplies = [fail(new Intercepted('https://x', 'it answered with HTML', true))];
    expect((await examine(tools)).filter(({ subject }) => subject === 'api')).toMatchObject([
      {
        verdict: 'problem',
        found: expect.stringContaining('a captive portal'),
        remedy: expect.stringMatching(/^log in/),
      },
    ]);
    simulated.service.mapReplies = [answerWith(map)];
    const wrong = async () => ({ date: 0, tookMs: 1 });
    expect(problemsOf(await examine({ ...tools, probeService: wrong }))).toMatchObject([{ subject: 'clock' }]);
    const day = 86_400_000;
    const inDays = (days: number) => async () => {
      const now = tools.now().getTime();
      const certificate = { subject: 'cp', validFrom: now - 90 * day, validTo: now + days * day } as Certificate;
      return { date: now / 1000, tookMs: 3, certificates: [certificate] };
    };
    expect(problemsOf(await examine({ ...tools, probeService: inDays(15) }))).toEqual([]);
    expect(problemsOf(await examine({ ...tools, probeService: inDays(13.5) }))).toMatchObject([
      {
        subject: 'api',
        checked: expect.stringMatching(/^the TLS certificate of /),
        found: expect.stringMatching(/^expires on .*, in 13 days$/),
        remedy: expect.stringContaining('ask the operator of the control plane to renew it'),
      },
    ]);
    const past = () => new Date('2020-01-01');
    expect(problemsOf(await examine({ ...tools, now: past })).map(({ subject }) => subject)).toContain('clock');
  });

  it('reports names that do not resolve, peers that do not respond, and drift', async () => {
    const named = mapAt('"1"', [peer(2, { endpoint: parseEndpoint('edge.example.net:51820') })], { routes: [] });
    const { simulated, tools } = await startExaminedHost(named);
    simulated.updatePeer(2, { latestHandshake: 1, keepalive: 25 });
    simulated.actual = {
      ...simulated.actual,
      routes: [],
      link: simulated.actual.link && { ...simulated.actual.link, mtu: 1000 },
    };
    expect(problemsOf(await examine(tools)).map(({ subject, remedy }) => `${subject}: ${remedy}`)).toEqual([
      'dns: getent ahosts edge.example.net, and check /etc/resolv.conf',
      'network: cpn plan cpn0, and cpn reconcile cpn0',
      'network: cpn explain 10.77.0.2',
    ]);
  });

  it('reports unfinished joins, and a host without a network', async () => {
    const { simulated, tools } = await startExaminedHost();
    const { membership: _, ...state } = await simulated.state();
    await tools.store.write({ ...state, membership: null });
    expect(problemsOf(await examine(tools))).toMatchObject([{ subject: 'state', found: 'was not finished' }]);
    await tools.store.forget('cpn0', []);
    expect((await examine(tools)).find(({ subject }) => subject === 'state')).toMatchObject({ remedy: 'cpn join' });
    await expect(examine(tools, 'office')).rejects.toThrow('has not joined');
  });
});

describe('the MTU', () => {
  it.each([1419, 1300, 576, 100])(
    'of a path that passes %i bytes is found, though one packet in three is lost',
    async (limit) => {
      let asked = 0;
      const echoes = async (to: Address, bytes: number) => {
        if (to !== '10.77.0.2') return true;
        asked += 1;
        return bytes <= limit && asked % 3 !== 0;
      };
      const { simulated, tools } = await startExaminedHost();
      simulated.onEcho = echoes;
      const [problem] = problemsOf(await examine(tools)).filter(({ checked }) => checked.includes('through cpn0'));
      const [, mtu] = /--mtu (\d+)/.exec(problem?.remedy ?? '') ?? [];
      expect(Math.max(576, limit) - Number(mtu)).toBeLessThanOrEqual(limit < 576 ? 0 : 8);
      expect(Number(mtu)).toBeLessThanOrEqual(Math.max(576, limit));
      expect(asked).toBeLessThan(60);
    },
  );

  it('is measured outside the tunnel with the mark of its own packets: a full tunnel carries all others', async () => {
    const { simulated, tools } = await startExaminedHost();
    const { device } = simulated.actual;
    if (device !== null) simulated.actual = { ...simulated.actual, device: { ...device, fwmark: 0xca6c } };
    simulated.onEcho = (to, bytes, mark) => to.startsWith('10.77.') || mark === 0xca6c || bytes <= 1420;
    const outside = (await examine(tools)).filter(({ checked }) => checked.includes('carry the largest'));
    expect(outside.map(({ verdict }) => verdict)).toEqual(['ok']);
  });

  it('is said to be measured where it is, and not to be too large when the daemon can lower it', async () => {
    const { simulated, tools } = await startExaminedHost();
    simulated.onEcho = (_, bytes) => bytes <= 1300;
    const mtuOf = async () => (await examine(tools)).filter(({ subject }) => subject === 'mtu');
    expect((await mtuOf())[0]?.remedy).toMatch(
      /^"cpn run" lowers the MTU within minutes; without it: cpn set cpn0 --mtu 1\d+/,
    );
    const underlay = nameUnderlay(simulated.actual.underlay);
    const pathMtu = { mtu: 1296, peer: 2, underlay, measuredAt: '2026-11-22T12:00:00.000Z' };
    await tools.store.write({ ...(await simulated.state()), pathMtu });
    await reconcileNetworks(tools);
    expect((await mtuOf())[0]).toMatchObject({
      verdict: 'ok',
      found: '1296, measured to peer-2 on 2026-11-22; 1420 fits the underlay',
    });
    expect(problemsOf(await mtuOf())).toEqual([]);
    await tools.store.write({ ...(await simulated.state()), options: { ...options, mtu: 1400 } });
    await reconcileNetworks(tools);
    expect(problemsOf(await mtuOf())).toMatchObject([{ remedy: expect.stringMatching(/^cpn set cpn0 --mtu 1\d+/) }]);
  });
});
