import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Office, patiently, startOffice, status } from '../e2e/office.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import { endure } from './endure.ts';
import { addEdge, edgeAddress } from './members.ts';
import { injecting, type Recorder } from './record.ts';
import type { Trouble } from './trouble.ts';
import { addTroubledHost, type TroubledHost, troubleBegins, troubleEnds } from './troubled-host.ts';

let office: Office;
/** Those that are in no trouble. */
const idle: TroubledHost[] = [];

beforeAll(async () => {
  office = await startOffice({ cidr: '10.77.0.0/16' });
  const edge = await addEdge(office);
  for (const number of [1, 2, 3]) idle.push(await addTroubledHost(office, edge, number));
});

afterAll(() => office?.lab.stop());

/** Injects a fault at a host of its own: tests wait for the most part, and do so side by side. */
async function injectingAt(fault: number, work: (at: TroubledHost, row: Recorder) => Promise<unknown>): Promise<void> {
  const troubled = await eventually('a host is idle', () => idle.pop(), { timeoutMs: 50_000 });
  try {
    await injecting(fault, (row) => work(troubled, row));
  } finally {
    // A fault that was not survived must not be met by the next test.
    await troubled.proxy.pass();
    idle.push(troubled);
  }
}

const answer = (code: number, headers: Record<string, string> = {}, body = '{"message":"no"}'): Trouble => ({
  kind: 'answer',
  status: code,
  headers,
  body,
});

/** More requests than a call makes: where a failure is one to try again at once, and where it is none. */
const repeated = 6;
const once = 2;

describe.concurrent('a control plane in trouble leaves the tunnel as it is, is told of once, and is heard again by itself', () => {
  it.each<[number, string, Trouble, RegExp, number]>([
    [2, '500', answer(500), /out of reach: it answered 500/, repeated],
    [2, '503', answer(503), /cannot answer now: no/, repeated],
    [4, '401', answer(401), /refused \(401\)/, once],
    [5, '403', answer(403), /refused \(403\)/, once],
    [5, '404', answer(404), /refused \(404\)/, once],
    [8, 'HTML', answer(200, { 'content-type': 'text/html' }, '<html>sign in</html>'), /is not JSON/, once],
    [8, 'half of a JSON text', answer(200, {}, '{"data":{"id":1,'), /says that it is JSON and is not/, once],
    [9, 'a reset within the body', { kind: 'truncated' }, /out of reach: .*reset/, repeated],
    [10, 'no keys', { kind: 'map', changes: { without: ['public_key'] } }, /lacks .*public_key/, once],
    [10, 'no list of peers', { kind: 'map', changes: { network: { peers: 'none' } } }, /peers/, once],
    [11, '100 MiB', { kind: 'oversize' }, /16 MiB|16777216/, once],
    [12, '200 MiB in 200 KiB of gzip', { kind: 'bomb' }, /16 MiB|16777216/, once],
    [13, '302 to another host', answer(302, { location: 'https://cp.example.net/api' }), /is a redirect \(302\)/, once],
    [13, '308 to http', answer(308, { location: 'http://203.0.113.11/api' }), /is a redirect \(308\)/, once],
  ])('%i: %s', (fault, how, trouble, says, requests) =>
    injectingAt(fault, async (troubled, row) => {
      const { proxy } = troubled;
      await endure(troubled, row, {
        how,
        says,
        begin: () => proxy.make(trouble),
        end: () => proxy.pass(),
        async tryAgain() {
          for (let more = 0; more < requests; more++) await proxy.awaitRequest();
        },
      });
    }),
  );
});

describe.concurrent('a service that is busy', () => {
  it('3: is left alone for as long as it asks', () =>
    injectingAt(3, async (troubled, row) => {
      const { proxy, daemon } = troubled;
      const before = proxy.requests.length;
      await endure(troubled, row, {
        how: '429, Retry-After 200',
        says: /asks to wait: it answered 429/,
        begin: () => proxy.make(answer(429, { 'retry-after': '200' })),
        async end() {
          // A client that does not heed it has asked five times by now.
          expect(proxy.requests.slice(before)).toHaveLength(1);
          await proxy.pass();
          daemon.process.signal('SIGHUP');
        },
      });
    }));

  it('15: is understood when its clock is a year ahead', () =>
    injectingAt(15, async (troubled, row) => {
      const { proxy } = troubled;
      const year = 365 * 24 * 3600 * 1000;
      const inSeconds = (seconds: number) => new Date(Date.now() + year + seconds * 1000).toUTCString();
      await endure(troubled, row, {
        how: 'a Date and a Retry-After of next year',
        says: /cannot answer now: no/,
        async begin() {
          await proxy.make(answer(503, { date: inSeconds(0), 'retry-after': inSeconds(2) }));
          // Taken by this host's clock it would be asked again after minutes.
          for (let more = 0; more < 3; more++) await proxy.awaitRequest();
        },
        end: () => proxy.pass(),
      });
    }));
});

it('1: a host that boots while nobody listens comes up from what it knows, and hears of the rest later', () =>
  injectingAt(1, async ({ proxy, host }, row) => {
    await proxy.make({ kind: 'refuse' });
    row.injected('reboot while connections are refused');
    await host.reboot();
    const daemon = await startDaemon(host, '--interval', '2');
    await eventually('the tunnel', async () => (await host.ping(edgeAddress, patiently)).received === 1);
    row.repaired();
    await daemon.awaitLog('trouble begins', ({ msg }) => msg === troubleBegins);
    expect(await status(host)).toMatchObject({ state: 'up', drift: [], sync: { error: expect.any(String) } });
    await proxy.pass();
    await daemon.awaitLog('trouble ends', ({ msg }) => msg === troubleEnds);
    await daemon.stop();
  }));
