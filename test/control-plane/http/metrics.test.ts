import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { InvalidRequest, OutcomeUnknown, Unavailable } from '../../../src/control-plane/errors.ts';
import { createMetrics } from '../../../src/control-plane/http/metrics.ts';
import type { ServedCertificate } from '../../../src/control-plane/http/tls-files.ts';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';
import type { Context } from '../../../src/control-plane/service/context.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { eventually } from '../../lab/eventually.ts';
import {
  closePlane,
  enroll,
  makeKey,
  makeNetwork,
  openPlane,
  owner,
  type Plane,
  startPlane,
  withDatabase,
} from '../harness.ts';
import { outlast, startOffice } from '../health/office.ts';
import { refuse, startReceiver, webhookAt } from '../health/receiver.ts';
import { makeOffice, openWaiting, read, tagged, untilWaiting } from '../push/long-poll.ts';
import { connectRaw } from '../raw.ts';

/** The samples of an exposition by name and labels, as `name{label="value"}`. */
function samplesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

async function scrape(plane: Pick<Plane, 'call'>): Promise<Map<string, number>> {
  const { status, body } = await plane.call('GET', '/metrics');
  expect(status).toBe(200);
  return samplesOf(body);
}

const requests = (method: string, route: string, status: number) =>
  `cpn_http_requests_total{method="${method}",route="${route}",status="${status}"}`;

describe('what is counted', () => {
  let plane: Plane;
  beforeAll(async () => {
    plane = await openPlane({ limits: { failedLogins: 1 } });
  });
  afterAll(() => closePlane(plane));

  test('is each request by the template of its route, its method and its status', async () => {
    const token = await plane.signIn('owner');
    const network = await makeNetwork(plane, token);
    await plane.call('GET', `/api/networks/${network}?secret=canary`, { token });
    await plane.call('GET', '/api/networks/999', { token });
    await plane.call('GET', '/nowhere/canary');
    const samples = await scrape(plane);
    expect(samples.get(requests('POST', '/api/networks', 201))).toBe(1);
    expect(samples.get(requests('GET', '/api/networks/:network', 200))).toBe(1);
    expect(samples.get(requests('GET', '/api/networks/:network', 404))).toBe(1);
    expect(samples.get(requests('GET', 'none', 404))).toBe(1);
    const duration = 'cpn_http_request_duration_seconds_count{method="GET",route="/api/networks/:network"}';
    expect(samples.get(duration)).toBe(2);
    expect([...samples.keys()].join('\n')).not.toContain('canary');
  });

  test('is each enrolment and the bytes of each map', async () => {
    const token = await plane.signIn('owner');
    const network = await makeNetwork(plane, token, { name: 'lab' });
    const key = await makeKey(plane, token, network);
    const before = await scrape(plane);
    for (let times = 0; times < 3; times += 1) await enroll(plane, key);
    const { body } = await plane.call('GET', `/api/networks/${network}`, { token });
    await plane.call('GET', `/api/networks/${network}`, {
      token,
      headers: { 'if-none-match': await tagged(plane, network, '"4"') },
    });
    const known = { 'if-none-match': await tagged(plane, network, '"2"'), 'a-im': 'cpn-delta' };
    const changes = await plane.call('GET', `/api/networks/${network}`, { token, headers: known });
    expect(changes.status).toBe(226);
    const after = await scrape(plane);
    const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    expect(grown('cpn_enrollments_total')).toBe(3);
    expect(grown('cpn_map_bytes_total')).toBe(
      JSON.stringify(body).length + Number(changes.headers.get('content-length')),
    );
  });

  test('is each login that was refused, and each request that came too often', async () => {
    for (const password of ['wrong', 'wrong again']) {
      await plane.call('POST', '/api/auth/login', { body: { ...owner, password } });
    }
    const samples = await scrape(plane);
    expect(samples.get('cpn_logins_refused_total')).toBe(1);
    expect(samples.get('cpn_rate_limited_total{route="/api/auth/login"}')).toBe(1);
  });

  test('is what was no request', async () => {
    const strange = await connectRaw(plane.url);
    strange.send('hello\r\n\r\n');
    await strange.ended();
    expect((await scrape(plane)).get(requests('none', 'none', 400))).toBe(1);
  });

  test('has names for gauges that no counter has', async () => {
    const { body } = await plane.call('GET', '/metrics');
    expect(body).toMatch(/^# TYPE \w+ gauge$/m);
    expect(body).not.toMatch(/^# TYPE \w+_(total|count|sum|bucket) gauge$/m);
  });

  test('is the process too, once for all control planes in it', async () => {
    const other = await startPlane();
    for (const samples of [await scrape(plane), await scrape(other)]) {
      expect(samples.get('process_open_fds')).toBeGreaterThan(0);
      expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(0);
    }
    expect((await scrape(other)).get('cpn_logins_refused_total')).toBe(0);
  });
});

test('who waits is counted while it waits, and not as a slow request', async () => {
  const on = await openWaiting();
  try {
    const { network } = await makeOffice(on);
    const replies = Array.from({ length: 3 }, () => read(on, network, 2, 'wait=45'));
    await untilWaiting(on, network, 3);
    expect((await scrape(on.plane)).get('cpn_waiting_connectors')).toBe(3);
    await on.plane.call('PATCH', `/api/networks/${network}`, { token: on.token, body: { name: 'other' } });
    await Promise.all(replies);
    const samples = await scrape(on.plane);
    expect(samples.get('cpn_waiting_connectors')).toBe(0);
    expect(samples.get(requests('GET', '/api/networks/:network', 200))).toBe(3);
    expect([...samples.keys()].join()).not.toContain(
      'duration_seconds_count{method="GET",route="/api/networks/:network"}',
    );
  } finally {
    await closePlane(on.plane);
  }
});

test('a database that fails is counted', async () => {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  await withDatabase(plane.dataDir, (db) => db.schema.alterTable('networks').renameTo('hidden').execute());
  expect((await plane.call('GET', '/api/networks', { token })).status).toBe(500);
  await plane.call('GET', '/nowhere');
  expect((await scrape(plane)).get('cpn_database_errors_total')).toBe(1);
});

test.each<[string, unknown, number]>([
  ['SQLite', Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR' }), 1],
  ['PostgreSQL', Object.assign(new Error('no such column'), { code: '42703', severity: 'ERROR' }), 1],
  ['a database that does not answer', new Unavailable('the database does not answer', 1, new Error('reset')), 1],
  ['a commit without a reply', new OutcomeUnknown(new Error('reset')), 1],
  ['a control plane that shuts down', new Unavailable('the control plane is shutting down'), 0],
  ['a refused request', new InvalidRequest({ name: ['is required'] }), 0],
  ['a fault of ours', new TypeError('x is not a function'), 0],
  ['nothing', undefined, 0],
])('a failure of %s counts as one of the database, or not', async (_of, error, count) => {
  const metrics = createMetrics({ notifier: new ChangeNotifier() } as unknown as Context, () => null);
  metrics.countFailure(error);
  expect(samplesOf(await metrics.format()).get('cpn_database_errors_total')).toBe(count);
});

test.each<[readonly number[] | null, number | undefined]>([
  [null, undefined],
  [[], undefined],
  [[3_000, 2_000, 4_000], 2],
])('of a chain that ends at %j, the first end is the one of the certificate', async (ends, seconds) => {
  const chain = ends?.map((validTo) => ({ validTo }));
  const served = { file: 'cert.pem', chain } as unknown as ServedCertificate;
  const metrics = createMetrics({ notifier: new ChangeNotifier() } as unknown as Context, () =>
    chain ? served : null,
  );
  const name = 'cpn_tls_certificate_expires_timestamp_seconds{file="cert.pem"}';
  expect(samplesOf(await metrics.format()).get(name)).toBe(seconds);
});

test('hosts are counted by the state that the last event stated', async () => {
  const office = await startOffice();
  const states = async () => {
    const samples = await scrape(office.plane);
    return ['online', 'offline'].map((state) => samples.get(`cpn_hosts{state="${state}"}`));
  };
  expect(await states()).toEqual([0, 0]);
  await office.call(office.one);
  await office.call(office.two);
  await eventually('two are online', async () => String(await states()) === '2,0');
  await outlast(office, () => [office.call(office.one)]);
  await eventually('one is offline', async () => String(await states()) === '1,1');
});

test('the events that wait for the webhook are counted, with the age of the oldest', async () => {
  const receiver = await startReceiver(refuse);
  const plane = await startPlane({ webhook: webhookAt(receiver.url, []) });
  const read = async () => {
    const samples = await scrape(plane);
    return ['events_waiting', 'oldest_event_seconds'].map((name) => samples.get(`cpn_webhook_${name}`));
  };
  expect(await read()).toEqual([0, 0]);
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token);
  for (const name of ['lab', 'office']) {
    await plane.call('PATCH', `/api/networks/${network}`, { token, body: { name } });
    plane.clock.advance(20_000);
  }
  expect(await read()).toEqual([2, 40]);
});

test('attempts that the receiver of the webhook does not accept are counted', async () => {
  const receiver = await startReceiver(refuse);
  const plane = await startPlane({ webhook: webhookAt(receiver.url, []) });
  const read = async () => (await scrape(plane)).get('cpn_webhook_failed_attempts_total');
  expect(await read()).toBe(0);
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token);
  await plane.call('PATCH', `/api/networks/${network}`, { token, body: { name: 'lab' } });
  await eventually('it is refused', async () => (await read()) === 1);
  plane.clock.advance(20_000);
  await eventually('it is refused again', async () => (await read()) === 2);
});

test('without an answer of the database only those of it are missing', async () => {
  const plane = await startPlane();
  const stored = (samples: ReadonlyMap<string, number>) =>
    [...samples.keys()].filter((name) => /^cpn_(hosts|webhook_(events|oldest))/.test(name));
  // What was read before is not what there is now.
  expect(stored(await scrape(plane))).toHaveLength(4);
  await withDatabase(plane.dataDir, (db) => db.schema.alterTable('deliveries').renameTo('hidden').execute());
  const samples = await scrape(plane);
  expect(samples.get('cpn_waiting_connectors')).toBe(0);
  expect(stored(samples)).toEqual([]);
});

describe('the metrics are for', () => {
  const readable = async (plane: Plane, headers: Record<string, string> = {}, url = plane.url) =>
    (await fetch(`${url}/metrics`, { headers })).status;

  test('callers on this machine, in the text format of Prometheus', async () => {
    const plane = await startPlane();
    const { status, headers } = await plane.call('GET', '/metrics');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect(await readable(plane, {}, plane.url.replace('127.0.0.1', 'localhost'))).toBe(200);
  });

  test.each([
    ['X-Forwarded-For', { 'x-forwarded-for': '127.0.0.1' }],
    ['Forwarded', { forwarded: 'for=127.0.0.1' }],
    ['Via', { via: '1.1 proxy' }],
    ['X-Real-IP', { 'x-real-ip': '127.0.0.1' }],
  ])('no client behind a proxy: %s', async (_name, headers) => {
    const plane = await startPlane();
    const reply = await plane.call('GET', '/metrics', { headers });
    expect([reply.status, reply.body.message]).toEqual([403, expect.stringContaining('--metrics')]);
  });

  test('no page in a browser that reached this machine by a name of its own', async () => {
    const plane = await startPlane();
    const page = await connectRaw(plane.url);
    page.send('GET /metrics HTTP/1.1\r\nHost: attacker.example\r\nConnection: close\r\n\r\n');
    expect(await page.ended()).toMatch(/^HTTP\/1.1 403 /);
  });

  test('no client of the main address, when there are trusted proxies', async () => {
    const plane = await startPlane({ proxies: [parsePrefix('127.0.0.1/32')] });
    const { status, body } = await plane.call('GET', '/metrics');
    expect([status, body.message]).toEqual([403, expect.stringMatching(/^with --trust-proxy, .*--metrics HOST:PORT/)]);
  });

  test('all clients of the metrics address, which serves nothing else', async () => {
    const plane = await startPlane({ metrics: { host: '127.0.0.1', port: 0 } });
    expect(await readable(plane)).toBe(403);
    const elsewhere = new URL(String(plane.server.metricsUrl));
    const reply = await fetch(elsewhere, { headers: { 'x-forwarded-for': '203.0.113.7' } });
    expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining('cpn_waiting_connectors 0')]);
    expect((await fetch(new URL('/api/networks', elsewhere))).status).toBe(404);
    await plane.server.close();
    await expect(fetch(elsewhere)).rejects.toThrow();
  });

  test('no client, when their address is in use: the error names the flag, and nothing is left listening', async () => {
    const taken = await startPlane();
    const refused = openPlane({ metrics: { host: '127.0.0.1', port: Number(new URL(taken.url).port) } });
    await expect(refused).rejects.toThrow('choose another with --metrics');
  });
});
