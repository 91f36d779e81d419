import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Office, patiently, startOffice, status } from '../e2e/office.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import { surviveFault } from './control-plane-fault.ts';
import { addEdge, edgeAddress } from './members.ts';
import { addProxiedHost, faultBegins, faultEnds, type ProxiedHost } from './proxied-host.ts';
import type { ProxyFault } from './proxy-fault.ts';
import { injecting, type Recorder } from './record.ts';

let office: Office;
/** The hosts without a fault. */
const idle: ProxiedHost[] = [];

beforeAll(async () => {
  office = await startOffice({ cidr: '10.77.0.0/16' });
  const edge = await addEdge(office);
  for (const number of [1, 2, 3]) idle.push(await addProxiedHost(office, edge, number));
});

afterAll(() => office?.lab.stop());

/** Injects a fault at a host of its own: tests wait for the most part, and do so side by side. */
async function injectingAt(fault: number, work: (at: ProxiedHost, row: Recorder) => Promise<unknown>): Promise<void> {
  const proxied = await eventually('a host is idle', () => idle.pop(), { timeoutMs: 50_000 });
  try {
    await injecting(fault, (row) => work(proxied, row));
  } finally {
    // A fault that was not survived must not be met by the next test.
    await proxied.proxy.pass();
    idle.push(proxied);
  }
}

const answer = (code: number, headers: Record<string, string> = {}, body = '{"message":"no"}'): ProxyFault => ({
  kind: 'answer',
  status: code,
  headers,
  body,
});

/** More requests than a call makes: where a failure is one to try again at once, and where it is none. */
const repeated = 6;
const once = 2;

describe.concurrent('a failing control plane leaves the tunnel as it is, is reported once, and is used again by itself', () => {
  it.each<[number, string, ProxyFault, RegExp, number]>([
    [2, '500', answer(500), /unreachable: it answered 500/, repeated],
    [2, '503', answer(503), /is busy: no/, repeated],
    [4, '401', answer(401), /refused \(401\)/, once],
    [5, '403', answer(403), /refused \(403\)/, once],
    [5, '404', answer(404), /refused \(404\)/, once],
    [8, 'HTML', answer(200, { 'content-type': 'text/html' }, '<html>sign in</html>'), /captive portal .*HTML/, once],
    [8, 'half of a JSON text', answer(200, {}, '{"data":{"id":1,'), /is declared as JSON and is not/, once],
    [9, 'a reset within the body', { kind: 'truncated' }, /unreachable: .*reset/, repeated],
    [10, 'no keys', { kind: 'map', changes: { without: ['public_key'] } }, /lacks .*public_key/, once],
    [10, 'no list of peers', { kind: 'map', changes: { network: { peers: 'none' } } }, /peers/, once],
    [11, '100 MiB', { kind: 'oversize' }, /16 MiB|16777216/, once],
    [12, '200 MiB in 200 KiB of gzip', { kind: 'bomb' }, /16 MiB|16777216/, once],
    [
      13,
      '302 to another host',
      answer(302, { location: 'https://cp.example.net/api' }),
      /redirects to cp\.example\.net/,
      once,
    ],
    [13, '308 to elsewhere', answer(308, { location: '/elsewhere' }), /is a redirect \(308\)/, once],
  ])('%i: %s', (fault, how, proxyFault, errorPattern, requests) =>
    injectingAt(fault, async (proxied, row) => {
      const { proxy } = proxied;
      await surviveFault(proxied, row, {
        how,
        errorPattern,
        begin: () => proxy.inject(proxyFault),
        end: () => proxy.pass(),
        async tryAgain() {
          for (let more = 0; more < requests; more++) await proxy.awaitRequest();
        },
      });
    }),
  );
});

describe.concurrent('a service that is busy', () => {
  it('3: receives no request during its Retry-After', () =>
    injectingAt(3, async (proxied, row) => {
      const { proxy, daemon } = proxied;
      const before = proxy.requests.length;
      await surviveFault(proxied, row, {
        how: '429, Retry-After 200',
        errorPattern: /limits requests: it answered 429/,
        begin: () => proxy.inject(answer(429, { 'retry-after': '200' })),
        async end() {
          // A client that ignores it has sent five requests by now.
          const asked = proxy.requests.slice(before).filter(({ kind }) => kind !== 'pass');
          expect(asked.filter(({ path }) => !path.includes('/report'))).toHaveLength(1);
          expect(new Set(asked.map(({ path }) => path)).size).toBe(asked.length);
          await proxy.pass();
          daemon.process.signal('SIGHUP');
        },
      });
    }));

  it('15: is understood when its clock is a year ahead', () =>
    injectingAt(15, async (proxied, row) => {
      const { proxy } = proxied;
      const year = 365 * 24 * 3600 * 1000;
      const inSeconds = (seconds: number) => new Date(Date.now() + year + seconds * 1000).toUTCString();
      await surviveFault(proxied, row, {
        how: 'a Date and a Retry-After of next year',
        errorPattern: /is busy: no/,
        async begin() {
          await proxy.inject(answer(503, { date: inSeconds(0), 'retry-after': inSeconds(2) }));
          // By this host's clock the retry would come after minutes.
          for (let more = 0; more < 3; more++) await proxy.awaitRequest();
        },
        end: () => proxy.pass(),
      });
    }));
});

it('1: a host that boots while the control plane is down comes up from the last map, and receives the rest later', () =>
  injectingAt(1, async ({ proxy, host }, row) => {
    await proxy.inject({ kind: 'refuse' });
    row.injected('reboot while connections are refused');
    await host.reboot();
    const daemon = await startDaemon(host, '--interval', '2');
    await eventually('the tunnel', async () => (await host.ping(edgeAddress, patiently)).received === 1);
    row.repaired();
    await daemon.awaitLog('the fault', ({ msg }) => msg === faultBegins);
    expect(await status(host)).toMatchObject({ state: 'up', drift: [], sync: { error: expect.any(String) } });
    await proxy.pass();
    await daemon.awaitLog('the recovery', ({ msg }) => msg === faultEnds);
    await daemon.stop();
  }));
