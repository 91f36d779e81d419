import { once } from 'node:events';
import { chmodSync, chownSync, unlinkSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import { connect as connectPlain } from 'node:net';
import { join } from 'node:path';
import tls, { connect, type TLSSocket } from 'node:tls';
import type { Logger } from 'pino';
import { describe, expect, it, onTestFinished, test, vi } from 'vitest';
import { watchCertificate } from '../../../src/control-plane/certificate-watch.ts';
import { UnusableFile } from '../../../src/control-plane/errors.ts';
import { readTlsFiles, type ServedCertificate, type TlsFiles } from '../../../src/control-plane/http/tls-files.ts';
import { WrongUsage } from '../../../src/core/errors/index.ts';
import { makeCertificate } from '../../api/certificate.ts';
import { ofAuthority, openAuthority } from '../../api/certificate-authority.ts';
import { eventually } from '../../lab/eventually.ts';
import { hour, makeFolder, openPlane, type Plane, startPlane } from '../harness.ts';

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** Writes a certificate and its key as they should be. */
function writePair({ cert, key }: Pair, files = newFiles()): TlsFiles {
  writeFileSync(files.certificate, cert);
  writeFileSync(files.key, key, { mode: 0o600 });
  return files;
}

function newFiles(): TlsFiles {
  const folder = makeFolder();
  return { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
}

/** Sends a request over TLS, trusting this certificate alone; on the connection of the agent where there is one. */
async function ask(
  { url }: Plane,
  path: string,
  { cert }: Pair,
  agent = new Agent(),
): Promise<{ status: number; body: string }> {
  const sent = request(`${url}${path}`, { ca: cert, servername: 'localhost', agent }).end();
  const [response] = await once(sent, 'response');
  let body = '';
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode, body };
}

async function handshake({ url }: Plane, options: object): Promise<TLSSocket> {
  const { hostname, port } = new URL(url);
  const socket = connect({
    host: hostname,
    port: Number(port),
    servername: 'localhost',
    rejectUnauthorized: false,
    ...options,
  });
  onTestFinished(() => {
    socket.destroy();
  });
  await once(socket, 'secureConnect');
  return socket;
}

describe('https', () => {
  test('is what is served with a certificate and its key, and nothing else is', async () => {
    const pair = makeCertificate();
    const plane = await startPlane({ tls: writePair(pair) });
    expect(plane.url).toMatch(/^https:/);
    expect(await ask(plane, '/healthz', pair)).toEqual({ status: 200, body: '{"status":"ok"}' });
    const plain = connectPlain(Number(new URL(plane.url).port), '127.0.0.1');
    plain.on('error', () => {});
    let answer = '';
    plain.on('data', (data) => {
      answer += data;
    });
    plain.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(plain, 'close');
    expect(answer).not.toContain('200');
  });

  test('begins with TLS 1.2', async () => {
    const plane = await startPlane({ tls: writePair(makeCertificate()) });
    const old = { minVersion: 'TLSv1' as const, maxVersion: 'TLSv1.1' as const, ciphers: 'DEFAULT@SECLEVEL=0' };
    await expect(handshake(plane, old)).rejects.toThrow(/alert protocol version/);
    expect((await handshake(plane, { maxVersion: 'TLSv1.2' })).getProtocol()).toBe('TLSv1.2');
    expect((await handshake(plane, {})).getProtocol()).toBe('TLSv1.3');
  });

  test('ends on request, with the replies under way, and drops a connection without a request', async () => {
    const pair = makeCertificate();
    const plane = await startPlane({ tls: writePair(pair) });
    const agent = new Agent({ keepAlive: true });
    await ask(plane, '/healthz', pair, agent);
    const silent = await handshake(plane, {});
    const mute = connectPlain(Number(new URL(plane.url).port), '127.0.0.1');
    await once(mute, 'connect');
    await ask(plane, '/healthz', pair, agent);
    const ended = Promise.all([once(silent, 'close'), once(mute, 'close')]);
    silent.on('error', () => {});
    mute.on('error', () => {});
    await plane.server.close();
    await ended;
  });

  test('lets a request that is under way end', async () => {
    const pair = makeCertificate();
    const plane = await startPlane({ tls: writePair(pair) });
    const slow = await handshake(plane, {});
    let answer = '';
    slow.setEncoding('utf8').on('data', (text) => {
      answer += text;
    });
    slow.write('POST /api/auth/login HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n');
    slow.write('Content-Type: application/json\r\nContent-Length: 2\r\n\r\n');
    // The server has the request once it reads the body.
    while (!answer.includes('100 Continue')) await once(slow, 'data');
    const closing = plane.server.close();
    slow.write('{}');
    await once(slow, 'close');
    await closing;
    expect(answer).toMatch(/HTTP\/1.1 422 .*"email":\["is required"\]/s);
  });
});

describe('another certificate', () => {
  test('is taken for new connections, and the old ones stay', async () => {
    const [before, after] = [makeCertificate(), makeCertificate()];
    const files = writePair(before);
    const plane = await startPlane({ tls: files });
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => kept.destroy());
    await ask(plane, '/healthz', before, kept);
    writePair(after, files);
    plane.server.reload();
    // The agent would fail with the old certificate if it had to connect again.
    expect((await ask(plane, '/healthz', before, kept)).status).toBe(200);
    expect((await ask(plane, '/healthz', after)).status).toBe(200);
    await expect(ask(plane, '/healthz', before)).rejects.toThrow(/self-signed certificate/);
    expect((await handshake(plane, { maxVersion: 'TLSv1.2' })).getProtocol()).toBe('TLSv1.2');
  });

  test('that cannot be used leaves the one that is there', async () => {
    const pair = makeCertificate();
    const files = writePair(pair);
    const plane = await startPlane({ tls: files });
    writeFileSync(files.certificate, makeCertificate().cert);
    expect(() => plane.server.reload()).toThrow(UnusableFile);
    expect((await ask(plane, '/healthz', pair)).status).toBe(200);
  });
});

describe('the watch of the certificate', () => {
  it('warns daily, of what is served by then', async () => {
    const authority = openAuthority();
    const files = writePair(authority.issue({ name: 'localhost', days: [-60, 30] }));
    const served = { now: readTlsFiles(files).served };
    let at = Date.now();
    const warnings: string[] = [];
    const warn = (fields: object, message: string) => warnings.push(`${message} ${JSON.stringify(fields)}`);
    const log = { warn } as unknown as Pick<Logger, 'warn'>;
    const watch = watchCertificate(
      () => served.now,
      () => new Date(at),
      log,
      5,
    );
    onTestFinished(watch.stop);
    expect(warnings).toEqual([]);
    at += 20 * 24 * hour;
    await eventually('a warning before the end', () =>
      /^TLS certificate expires soon .*, in 9 days/.test(`${warnings.at(-1)}`),
    );
    at += 20 * 24 * hour;
    await eventually('a warning after the end', () =>
      /^TLS certificate has expired .*SIGHUP/.test(`${warnings.at(-1)}`),
    );
    writePair(authority.issue({ name: 'localhost', days: [-1, 90] }), files);
    await eventually('a hint at the file', () =>
      /has a certificate that ends later.* reload/.test(`${warnings.at(-1)}`),
    );
    served.now = readTlsFiles(writePair(authority.issue({ name: 'localhost', days: [-1, 90] }))).served;
    const count = warnings.length;
    watch.onReload();
    expect(warnings.length).toBe(count);
  });
});

test.each([
  ['Node', 'default', true],
  ['this machine', 'system', true],
  ['neither', 'none', false],
])('the issuer of a certificate is trusted as a root by %s', (_by, store, isTrusted) => {
  const { issue } = openAuthority();
  const root = issue({ name: 'Root', extensions: ofAuthority });
  const files = writePair(issue({ name: 'localhost', issuer: root }));
  const read = vi.spyOn(tls, 'getCACertificates').mockImplementation((type) => (type === store ? [root.cert] : []));
  syncBuiltinESMExports();
  onTestFinished(() => {
    read.mockRestore();
    syncBuiltinESMExports();
  });
  expect(readTlsFiles(files).served.isIssuerTrusted).toBe(isTrusted);
});

describe('the warnings of a certificate', () => {
  const day = 24 * hour;
  const at = Date.parse('2030-01-01T00:00:00.000Z');

  /** The messages of the watch, and their remedies. */
  function watch(days: number, { isIssuerTrusted = false, file = '/nowhere/cert.pem' } = {}) {
    vi.useFakeTimers({ now: at });
    onTestFinished(() => void vi.useRealTimers());
    const validity = { validFrom: at - 90 * day, validTo: at + days * day };
    const chain = [{ subject: 'localhost', issuer: 'CA', isSelfIssued: false, ...validity }];
    const served = { file, chain, isIssuerTrusted } as unknown as ServedCertificate;
    const logged: string[] = [];
    const warn = ({ remedy }: { remedy: string }, message: string) =>
      void logged.push(message.replace(/^TLS certificate /, ''), remedy);
    const watching = watchCertificate(
      () => served,
      () => new Date(),
      { warn } as unknown as Pick<Logger, 'warn'>,
    );
    onTestFinished(watching.stop);
    return { watching, remedies: logged, taken: () => logged.splice(0).filter((_, index) => index % 2 === 0) };
  }

  test('come at the start and after a reload; those of its end daily too, until the stop', () => {
    const { watching, taken } = watch(10);
    const all = ['expires soon', 'lacks its intermediate certificate'];
    expect(taken()).toEqual(all);
    vi.advanceTimersByTime(day - 1);
    expect(taken()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(taken()).toEqual(['expires soon']);
    watching.onReload();
    expect(taken()).toEqual(all);
    watching.stop();
    vi.advanceTimersByTime(3 * day);
    expect(taken()).toEqual([]);
  });

  test.each([
    [60, true, []],
    [60, false, ['lacks its intermediate certificate']],
    [10, true, ['expires soon']],
    [-1, true, ['has expired']],
  ])('of one that ends in %i days, whose issuer is a root here (%s), are %j', (days, isIssuerTrusted, messages) => {
    expect(watch(days, { isIssuerTrusted }).taken()).toEqual(messages);
  });

  test.each([
    ['ends later', 20, /^the file has a certificate that ends later/],
    ['ends earlier', 5, /^replace the files of --tls-cert/],
  ])('name the remedy where the one in the file %s', (_when, days, remedy) => {
    const daysFromNow = Math.round((at - Date.now()) / day) + days;
    const { certificate: file } = writePair(openAuthority().issue({ name: 'localhost', days: [-1, daysFromNow] }));
    expect(watch(10, { isIssuerTrusted: true, file }).remedies[1]).toMatch(remedy);
  });

  test('after a reload are those of the certificate that is served then', async () => {
    const files = writePair(makeCertificate());
    const plane = await startPlane({ tls: files, now: () => new Date() });
    writePair(openAuthority().issue({ name: 'localhost', days: [-60, 2] }), files);
    expect(plane.log()).not.toContain('TLS certificate expires soon');
    plane.server.reload();
    expect(plane.log()).toContain('TLS certificate expires soon');
  });
});

describe('files that are refused, before anything is opened:', () => {
  async function refusal(
    spoil: (files: TlsFiles) => void,
    kind: object = UnusableFile,
  ): Promise<{ message: string; files: TlsFiles }> {
    const files = writePair(makeCertificate());
    spoil(files);
    const failure = await openPlane({ tls: files }).then(
      () => null,
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(kind);
    return { message: String((failure as Error).message), files };
  }

  test.each(['0644', '0604', '0660', '0640'])('a key that others can read, by the mode %s', async (digits) => {
    const { message, files } = await refusal(({ key }) => {
      chownSync(key, 65534, 65534);
      chmodSync(key, Number.parseInt(digits, 8));
    });
    expect(message).toBe(`${files.key} can be read by others (mode ${digits}); type: chmod 600 ${files.key}`);
  });

  test("a key of root's that everybody can read; one that its group can read is as Debian has them", async () => {
    expect((await refusal(({ key }) => chmodSync(key, 0o644))).message).toContain('chmod 600');
    const files = writePair(makeCertificate());
    const isRefused = (mode: number) => {
      chmodSync(files.key, mode);
      try {
        return readTlsFiles(files) === null;
      } catch (error) {
        return error instanceof UnusableFile;
      }
    };
    expect([0o600, 0o400, 0o640, 0o440].filter(isRefused)).toEqual([]);
    const open = [0o660, 0o620, 0o604, 0o602, 0o601];
    expect(open.filter(isRefused)).toEqual(open);
  });

  test.each([
    ['a certificate that is not there', { certificate: null }, /^--tls-cert \S+\/cert\.pem cannot be read \(ENOENT\)/],
    ['a key that is not there', { key: null }, /^--tls-key \S+\/key\.pem cannot be read \(ENOENT\)/],
    ['something else for a certificate', { certificate: 'canary' }, /cert\.pem holds no certificate in PEM/],
    ['something else for a key', { key: 'canary' }, /key\.pem holds no private key in PEM/],
    ['the key of another certificate', { key: makeCertificate().key }, /key\.pem is not the key of .*cert\.pem/],
  ])('%s', async (_what, contents: { certificate?: string | null; key?: string | null }, expected) => {
    const { message } = await refusal(
      (files) => {
        for (const [name, content] of Object.entries(contents)) {
          const path = files[name as keyof TlsFiles];
          if (content === null) unlinkSync(path);
          else writeFileSync(path, content);
        }
      },
      Object.values(contents).includes(null) ? WrongUsage : UnusableFile,
    );
    expect(message).toMatch(expected);
    expect(message).not.toContain('canary');
  });
});
