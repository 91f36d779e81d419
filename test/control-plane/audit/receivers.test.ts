import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import tls, { createServer as createTlsServer } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { openAuditLog } from '../../../src/control-plane/audit/audit-log.ts';
import { createOutputReceiver } from '../../../src/control-plane/audit/receivers.ts';
import { type AuditReceiver, startSending } from '../../../src/control-plane/audit/send-audit.ts';
import type { ServeOptions } from '../../../src/control-plane/serve.ts';
import { makeCertificate } from '../../api/certificate.ts';
import { eventually } from '../../lab/eventually.ts';
import { memory } from '../../lab/memory.ts';
import {
  closePlane,
  contextOver,
  hour,
  logIn,
  makeNetwork,
  openPlane,
  type Plane,
  startPlane,
  withDatabase,
} from '../harness.ts';
import { refuse, startReceiver, webhookAt } from '../health/receiver.ts';

const makeFolder = () => mkdtempSync(join(memory, 'audit-'));
const linesOf = (path: string) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

/** A control plane whose audit goes to these receivers, and a function that makes networks. */
async function start(options: Partial<ServeOptions>) {
  const plane = await startPlane({ chainMs: 100, ...options });
  await untilRegistered(plane, (options.auditLog ? 1 : 0) + (options.webhook?.actions.length ? 1 : 0));
  const token = await logIn(plane);
  const make = async (...names: string[]) => {
    for (const name of names) await makeNetwork(plane, token, { name });
  };
  return { plane, make };
}

const untilRegistered = (plane: Plane, count: number) =>
  eventually('the receivers are known', () =>
    withDatabase(plane.dataDir, async (db) => {
      const found = await db.selectFrom('audit_receivers').select('name').execute();
      return found.length === count;
    }),
  );

const namesIn = (messages: readonly { data: { target: { name: string } } }[]) =>
  messages.map(({ data }) => data.target.name);

test('a file gets each entry as a line in the order of the chain, across its rotation', async () => {
  const path = join(makeFolder(), 'audit.log');
  const { make } = await start({ auditLog: await openAuditLog(path, '--audit-log') });
  await make('one', 'two');
  await eventually('two lines', async () => namesIn(linesOf(path)).slice(-2).join() === 'one,two');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  renameSync(path, `${path}.1`);
  await make('three');
  await eventually('a new file', async () => namesIn(linesOf(path)).join() === 'three');
  const [{ type, timestamp, data }] = linesOf(path);
  expect({ type, timestamp }).toEqual({ type: 'audit.network.create', timestamp: data.at });
  expect(data.chain).toEqual({ seq: expect.any(Number), hash: expect.any(String) });
});

test('a file that log rotation copies and empties begins again with the next line', async () => {
  const path = join(makeFolder(), 'audit.log');
  const { make } = await start({ auditLog: await openAuditLog(path, '--audit-log') });
  await make('one');
  await eventually('a line', async () => namesIn(linesOf(path)).at(-1) === 'one');
  truncateSync(path);
  await make('two');
  await eventually('a line at its start', async () => namesIn(linesOf(path)).join() === 'two');
});

test('a line that a full disk cut off does not spoil the next one', async () => {
  const path = join(makeFolder(), 'audit.log');
  writeFileSync(path, '{"type":"audit.lo');
  const { make } = await start({ auditLog: await openAuditLog(path, '--audit-log') });
  await make('one');
  const read = () => readFileSync(path, 'utf8').split('\n');
  await eventually('a line', async () => read().some((line) => line.includes('"one"')));
  expect(read()[0]).toBe('{"type":"audit.lo');
});

test('a file that cannot be written is refused at the start', async () => {
  const folder = makeFolder();
  const path = join(folder, 'missing', 'audit.log');
  await expect(openAuditLog(path, '--audit-log')).rejects.toThrow(
    `--audit-log ${JSON.stringify(path)} cannot be written (ENOENT)`,
  );
  await expect(openAuditLog(folder, '--audit-log')).rejects.toThrow(/is no regular file/);
  await expect(openAuditLog('https://logs.example.net', '--audit-log')).rejects.toThrow(/is no kind of log/);
  await expect(openAuditLog('syslog://logs.example.net/path', '--audit-log')).rejects.toThrow(/is no server of syslog/);
});

test('a new receiver gets nothing from before, also of a database without a chain', async () => {
  const path = join(makeFolder(), 'audit.log');
  const dataDir = makeFolder();
  const first = await openPlane({ dataDir });
  await makeNetwork(first, await logIn(first), { name: 'before' });
  await closePlane(first);
  const { make } = await start({ dataDir, auditLog: await openAuditLog(path, '--audit-log') });
  await make('after');
  await eventually('it came', async () => readFileSync(path, 'utf8').includes('"after"'));
  expect(linesOf(path).map(({ type }) => type)).toEqual(['audit.login', 'audit.network.create']);
});

test('the webhook gets the entries that it names, one after the other, and events as before', async () => {
  const receiver = await startReceiver();
  const webhook = webhookAt(receiver.url, ['network.updated', 'audit.network.*']);
  const { plane, make } = await start({ webhook });
  await make('one', 'two', 'three');
  await plane.call('POST', '/api/auth/login', { body: { email: 'unknown@example.net', password: 'wrong' } });
  const bodies = await receiver.has(3);
  expect(bodies.map(({ type }) => type)).toEqual(Array(3).fill('audit.network.create'));
  expect(namesIn(bodies as never)).toEqual(['one', 'two', 'three']);
  const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
  expect(ids).toEqual(bodies.map(({ data, timestamp }) => `aud_${data.id}_${Date.parse(timestamp)}`));
});

test('a receiver that is dead delays only itself, and gets all in order once it lives', async () => {
  const receiver = await startReceiver(refuse);
  const path = join(makeFolder(), 'audit.log');
  const { plane, make } = await start({
    ...{ webhook: webhookAt(receiver.url, ['audit.*']), auditLog: await openAuditLog(path, '--audit-log') },
  });
  await make('one', 'two', 'three');
  await eventually('the file has all', async () => namesIn(linesOf(path)).slice(-3).join() === 'one,two,three');
  await eventually('an attempt failed', async () => receiver.received.length > 0);
  expect(plane.log()).toContain('audit not sent, retrying');
  const failed = receiver.received.length;
  receiver.answer((response) => response.writeHead(204).end());
  await receiver.has(failed + 3);
  const bodies = receiver.received.slice(-3).map(({ body }) => JSON.parse(body));
  expect(namesIn(bodies)).toEqual(['one', 'two', 'three']);
  // The attempts of one entry have one id.
  const [first] = receiver.received;
  expect(
    receiver.received.filter(({ headers }) => headers['webhook-id'] === first?.headers['webhook-id']).length,
  ).toBeGreaterThan(1);
});

test('an entry that a receiver refuses by itself is given up after a day, and the rest follows', async () => {
  const receiver = await startReceiver((response, { body }) => {
    response.writeHead(body.includes('"poison"') ? 413 : 204).end();
  });
  const { plane, make } = await start({ webhook: webhookAt(receiver.url, ['audit.*']) });
  await make('poison', 'next');
  await eventually('it is refused', async () => receiver.received.some(({ body }) => body.includes('"poison"')));
  expect(receiver.received.some(({ body }) => body.includes('"next"'))).toBe(false);
  await eventually('the first refusal is noted', async () => plane.log().includes('audit not sent, retrying'));
  plane.clock.advance(25 * hour);
  await eventually('the next one came', async () => receiver.received.some(({ body }) => body.includes('"next"')));
  expect(plane.log()).toContain('audit entry given up');
});

/** A server of syslog that keeps what each connection sent; over TLS with a certificate. */
async function startSyslog(
  onConnection: (socket: Socket) => void = () => {},
  certificate: ReturnType<typeof makeCertificate> | null = null,
) {
  const received: string[] = [];
  const onSocket = (socket: Socket) => {
    socket.on('error', () => {});
    onConnection(socket);
    void text(socket).then(
      (whole) => received.push(whole),
      () => {},
    );
  };
  const server = certificate === null ? createServer(onSocket) : createTlsServer(certificate, onSocket);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { received, port, url: `syslog://127.0.0.1:${port}` };
}

test('syslog gets messages of RFC 5424 after their length, again after a connection that broke', async () => {
  let breaks = 1;
  const { received, url } = await startSyslog((socket) => {
    if (breaks > 0) socket.resetAndDestroy();
    breaks -= 1;
  });
  const { make } = await start({ auditLog: await openAuditLog(url, '--audit-log') });
  await make('bücher');
  await eventually('it came', async () => received.join('').includes('bücher'));
  const [, length, message] = /(\d+) (<109>1 [^<]*bücher[^<]*)$/s.exec(received.join('')) ?? [];
  expect(Buffer.byteLength(message ?? '')).toBe(Number(length));
  expect(message).toMatch(
    /^<109>1 2030-01-01T00:00:00\.000Z \S+ cpn-control-plane \d+ audit - \{"type":"audit\.network\.create"/,
  );
});

test('a syslog server that closes a connection before its end gets the entries again', async () => {
  let early = 2;
  const { received, url } = await startSyslog((socket) => {
    if (early > 0) socket.end();
    early -= 1;
  });
  const { plane, make } = await start({ auditLog: await openAuditLog(url, '--audit-log') });
  await make('one');
  await eventually('it came', async () => received.join('').includes('"one"'));
  expect(plane.log()).toContain('the server closed the connection early');
});

/** Trusts the certificate as if it were one of the system, until the end of the test. */
function trust({ cert }: ReturnType<typeof makeCertificate>) {
  const usual = tls.getCACertificates('default');
  tls.setDefaultCACertificates([...usual, cert]);
  onTestFinished(() => tls.setDefaultCACertificates(usual));
}

test.each(['localhost', '127.0.0.1'])('syslog over TLS gets the messages at %s', async (name) => {
  const certificate = makeCertificate({ name });
  trust(certificate);
  const warnings: string[] = [];
  const onWarning = ({ message }: Error) => void warnings.push(message);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const { received, port } = await startSyslog(() => {}, certificate);
  const { plane, make } = await start({ auditLog: await openAuditLog(`syslogs://${name}:${port}`, '--audit-log') });
  await make('bücher', 'two');
  await eventually('they came', async () => received.join('').includes('"two"'));
  const [, length, message] = /(\d+) (<109>1 [^<]*bücher[^<]*\})(?=\d+ <109>|$)/s.exec(received.join('')) ?? [];
  expect(Buffer.byteLength(message ?? '')).toBe(Number(length));
  expect(plane.log()).not.toContain('audit not sent');
  expect(warnings).toEqual([]);
});

test.each([
  ['that no authority signed', false, 'localhost', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ['of another name', true, 'logs.example.net', 'ERR_TLS_CERT_ALTNAME_INVALID'],
])('syslog over TLS gets nothing with a certificate %s', async (_, isTrusted, name, code) => {
  const certificate = makeCertificate({ name });
  if (isTrusted) trust(certificate);
  const { received, port } = await startSyslog(() => {}, certificate);
  const { plane, make } = await start({ auditLog: await openAuditLog(`syslogs://localhost:${port}`, '--audit-log') });
  await make('one');
  await eventually('an attempt failed', async () => plane.log().includes(code));
  expect(received.join('')).toBe('');
});

test('a standard output that does not take its lines does not delay the end', async () => {
  const output = { write: () => true };
  const plane = await openPlane({ chainMs: 50, auditLog: createOutputReceiver(output as never) });
  await untilRegistered(plane, 1);
  await logIn(plane);
  await eventually('it is sent', async () => plane.log().includes('request answered'));
  await closePlane(plane);
});

test('one process at a time sends, and another takes over where it ended', async () => {
  const { plane, make } = await start({});
  const got: string[] = [];
  const makeReceiver = (by: string): AuditReceiver => ({
    ...{ name: 'test', label: 'test', accepts: () => true },
    send: async (messages) => {
      got.push(...messages.map(({ entry }) => `${by}:${entry.target.name}`));
      return { count: messages.length, failure: null };
    },
  });
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  await withDatabase(plane.dataDir, async (db) => {
    const context = contextOver(db, plane);
    const first = startSending(context, makeReceiver('first'), log, () => {});
    await untilRegistered(plane, 1);
    await make('one');
    await eventually('it came', async () => got.includes('first:one'));
    got.length = 0;
    const second = startSending(context, makeReceiver('second'), log, () => {});
    await make('two');
    await eventually('the next came', async () => got.includes('first:two'));
    await first.stop();
    await make('three');
    await eventually('the other one took over', async () => got.includes('second:three'));
    await second.stop();
  });
  expect(got.map((each) => each.split(':')[1])).toEqual(['two', 'three']);
});

test('another process takes over two minutes after a death, and sends again what may not have come', async () => {
  const { plane, make } = await start({});
  const got: string[] = [];
  const died = Promise.withResolvers<void>();
  const makeReceiver = (by: string): AuditReceiver => ({
    ...{ name: 'test', label: 'test', accepts: () => true },
    send: async (messages) => {
      got.push(...messages.map(({ id, entry }) => `${by}:${entry.target.name}:${id}`));
      if (by === 'second') return { count: messages.length, failure: null };
      await died.promise;
      return { count: 0, failure: { reason: 'dead', retryAfterMs: 0, isRefusal: false } };
    },
  });
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  await withDatabase(plane.dataDir, async (db) => {
    const context = contextOver(db, plane);
    const first = startSending(context, makeReceiver('first'), log, () => {});
    await untilRegistered(plane, 1);
    await make('one');
    await eventually('it is sent', async () => got.length > 0);
    const second = startSending(context, makeReceiver('second'), log, () => {});
    plane.clock.advance(119_000);
    await sleep(1_500);
    expect(got.filter((each) => each.startsWith('second'))).toEqual([]);
    plane.clock.advance(2_000);
    await eventually('the other one took over', async () => got.some((each) => each.startsWith('second:one:')));
    const ids = got.filter((each) => each.includes(':one:')).map((each) => each.split(':').at(-1));
    expect([ids.length, new Set(ids).size]).toEqual([2, 1]);
    died.resolve();
    await Promise.all([first.stop(), second.stop()]);
  });
});

test('standard output gets lines; one that is closed keeps them waiting', async () => {
  const written: string[] = [];
  let error: Error | null = new Error('EPIPE');
  const output = {
    write: (lines: string, done: (error: Error | null) => void) => {
      if (error === null) written.push(lines);
      done(error);
      return true;
    },
  };
  const { make } = await start({ auditLog: createOutputReceiver(output as never) });
  await make('one');
  error = null;
  await eventually('it came', async () => written.join('').includes('"one"'));
});

test('the metrics have what waits for a receiver', async () => {
  const path = join(makeFolder(), 'audit.log');
  const receiver = await openAuditLog(path, '--audit-log');
  const { plane, make } = await start({ auditLog: receiver });
  renameSync(path, `${path}.away`);
  mkdirSync(path);
  await make('one', 'two');
  const read = async () => (await (await fetch(`${plane.url}/metrics`)).text()).split('\n');
  await eventually('a login and two wait', async () =>
    (await read()).includes(`cpn_audit_entries_waiting{receiver="${path}"} 3`),
  );
  await eventually('a failed attempt is counted', async () =>
    (await read()).some((line) => line.startsWith(`cpn_audit_failed_attempts_total{receiver="${path}"}`)),
  );
});
