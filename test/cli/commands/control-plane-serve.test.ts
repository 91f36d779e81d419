import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { connect } from 'node:tls';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { makeCertificate } from '../../api/certificate.ts';
import { type Issued, ofAuthority, openAuthority } from '../../api/certificate-authority.ts';
import { call } from '../../control-plane/harness.ts';
import { connectRaw } from '../../control-plane/raw.ts';
import { eventually } from '../../lab/eventually.ts';
import { readExposition } from '../daemon/metrics/exposition.ts';
import { failServing, makeFolder, owner, runProgram, startServing } from './served-process.ts';

/** Writes a certificate for localhost into the folder, and gives the flags that name it. */
function writeCertificate(folder: string): string[] {
  const [certificate, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const pair = makeCertificate();
  writeFileSync(certificate, pair.cert);
  writeFileSync(key, pair.key, { mode: 0o600 });
  return ['--tls-cert', certificate, '--tls-key', key];
}

/** The certificate that is shown to a new connection. */
async function certificateAt(url: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

test('sessions end by --session-max, and --session-idle may not be longer', async () => {
  const folder = makeFolder();
  const { url } = await startServing(folder, '--session-max', '1h');
  const before = Date.now();
  const login = await call(url, 'POST', '/api/auth/login', { body: owner });
  const lasts = Date.parse(login.body.data.expires_at) - before;
  expect([lasts > 3_500_000, lasts < 3_700_000]).toEqual([true, true]);
  const { code, said } = await failServing(makeFolder(), '--session-max', '1h', '--session-idle', '2h');
  expect([code, said]).toEqual([2, expect.stringContaining('--session-idle is longer than --session-max')]);
});

describe('with a certificate', () => {
  test('whose key others can read, the unit does not start it again', async () => {
    const folder = makeFolder();
    const flags = writeCertificate(folder);
    chmodSync(join(folder, 'key.pem'), 0o644);
    const { code, said } = await failServing(folder, ...flags);
    expect([code, said]).toEqual([2, expect.stringContaining('key.pem can be read by others (mode 0644)')]);
  });

  test('an administrator logs in over https, who trusts it', async () => {
    const folder = makeFolder();
    const { url } = await startServing(folder, ...writeCertificate(folder));
    expect(url).toMatch(/^https:/);
    const login = (environment: Record<string, string>) => {
      const password = ['--email', owner.email, '--password-file', join(folder, 'password')];
      const where = ['--api', url.replace('127.0.0.1', 'localhost')];
      return runProgram(['login', ...where, ...password], { XDG_CONFIG_HOME: folder, ...environment });
    };
    const stranger = await login({});
    expect([stranger.code, stranger.stderr]).toEqual([5, expect.stringContaining('--ca-file')]);
    const known = await login({ NODE_EXTRA_CA_CERTS: join(folder, 'cert.pem') });
    expect([known.stdout, known.code]).toEqual([expect.stringContaining('logged in'), 0]);
  });

  test('SIGHUP takes another one, and keeps it where the next cannot be used', async () => {
    const folder = makeFolder();
    const { url, child, says, said } = await startServing(folder, ...writeCertificate(folder));
    const first = await certificateAt(url);
    writeCertificate(folder);
    child.kill('SIGHUP');
    expect(await says('"msg":"certificate reloaded"')).toContain(`"certificate":"${join(folder, 'cert.pem')}"`);
    const second = await certificateAt(url);
    expect(second).not.toBe(first);
    writeFileSync(join(folder, 'key.pem'), 'canary');
    child.kill('SIGHUP');
    expect(await says('"msg":"certificate not reloaded"')).toContain('key.pem holds no private key in PEM');
    expect(await certificateAt(url)).toBe(second);
    expect(said()).not.toContain('canary');
  });
});

describe('a certificate that hosts do not accept, or soon will not', () => {
  /** Copies a chain and its key to the files of the flags. */
  function install(folder: string, ...chain: Issued[]): string[] {
    const [certificate, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    writeFileSync(certificate, chain.map(({ cert }) => cert).join(''));
    writeFileSync(key, chain[0]?.key ?? '', { mode: 0o600 });
    return ['--tls-cert', certificate, '--tls-key', key];
  }

  test('is warned about at the start and on reload, and its end is a metric', async () => {
    const { issue } = openAuthority();
    const root = issue({ name: 'Office Root', extensions: ofAuthority });
    const intermediate = issue({ name: 'Office Intermediate', issuer: root, extensions: ofAuthority });
    const leaf = (days: [number, number]) => issue({ name: 'localhost', issuer: intermediate, days });
    const folder = makeFolder();
    const flags = install(folder, leaf([-9, -2]), intermediate);
    const { child, says, said } = await startServing(folder, ...flags, '--metrics', '127.0.0.1:0');
    const metrics = /metrics at (\S+)/.exec(await says('metrics at'))?.[1] ?? '';
    const expired = await says('"msg":"TLS certificate has expired"');
    expect(JSON.parse(expired)).toMatchObject({
      level: 40,
      certificate: join(folder, 'cert.pem'),
      problem: expect.stringMatching(/^expired on 20\d\d-/),
      remedy: expect.stringMatching(/replace the files of --tls-cert and --tls-key, .*systemctl reload/),
    });
    const reload = async (...chain: Issued[]) => {
      const before = said().length;
      install(folder, ...chain);
      child.kill('SIGHUP');
      // The line of the reload comes after the warnings.
      await eventually('the reload', () => said().slice(before).includes('"msg":"certificate reloaded"'));
      return said().slice(before);
    };
    const near = leaf([-80, 10]);
    expect(await reload(near, intermediate)).toMatch(
      /"problem":"expires on [^"]+, in 9 days".*"TLS certificate expires soon"/,
    );
    const families = readExposition(await (await fetch(metrics)).text());
    const { samples = [], type } = families.get('cpn_tls_certificate_expires_timestamp_seconds') ?? {};
    const end = new Date(new X509Certificate(near.cert).validTo).getTime() / 1000;
    expect([type, samples.map(({ labels, value }) => [labels, value])]).toEqual([
      'gauge',
      [[{ file: join(folder, 'cert.pem') }, end]],
    ]);
    expect(await reload(leaf([-1, 90]))).toMatch(
      /"problem":"is sent without the certificate of \\"Office Intermediate\\".*"TLS certificate lacks its intermediate certificate"/,
    );
    expect(await reload(leaf([-1, 90]), intermediate)).not.toContain('"level":40');
  });

  test('is accepted without its issuer where that is a root of this machine', async () => {
    const { issue } = openAuthority();
    const root = issue({ name: 'Office Root', extensions: ofAuthority });
    const folder = makeFolder();
    const flags = install(folder, issue({ name: 'localhost', issuer: root }));
    vi.stubEnv('NODE_EXTRA_CA_CERTS', root.certFile);
    onTestFinished(() => void vi.unstubAllEnvs());
    const served = await startServing(folder, ...flags);
    served.child.kill('SIGTERM');
    expect(await served.ended()).toBe(0);
    expect(served.said()).not.toContain('TLS certificate');
  });
});

test('without a certificate SIGHUP reloads nothing, says so, and ends no connection', async () => {
  const { url, child, says } = await startServing(makeFolder());
  const client = await connectRaw(url);
  client.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await client.until('"status":"ok"');
  child.kill('SIGHUP');
  await says('"msg":"nothing to reload: there is no TLS certificate"');
  client.send('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n');
  await client.until('"status":"ready"');
  client.socket.destroy();
});

test('an idle control plane does not wake all the time', async () => {
  const { child } = await startServing(makeFolder());
  const readSwitches = () => {
    const [, switches] =
      /^voluntary_ctxt_switches:\s+(\d+)$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
    return Number(switches);
  };
  await setTimeout(1_000);
  const before = readSwitches();
  await setTimeout(2_000);
  // A busy machine makes them fewer.
  expect(readSwitches() - before).toBeLessThan(100);
});

describe('beyond loopback', () => {
  const warning = 'warning: passwords, keys and tokens cross the network unencrypted';
  const beyond = ['--listen', '0.0.0.0:0'];

  test('plain http is warned about, in one sentence', async () => {
    const { said, says } = await startServing(makeFolder(), ...beyond);
    await says(warning);
    expect(
      said()
        .split('\n')
        .filter((line) => line.includes('warning')),
    ).toHaveLength(1);
  });

  test.each([
    ['a certificate', writeCertificate],
    ['a trusted proxy', () => ['--trust-proxy', '10.0.0.1']],
  ])('nothing is, with %s', async (_what, flags) => {
    const folder = makeFolder();
    const served = await startServing(folder, ...beyond, ...flags(folder));
    served.child.kill('SIGTERM');
    expect(await served.ended()).toBe(0);
    expect(served.said()).not.toContain('warning');
  });
});

test('limits and the address of the metrics are as they were given', async () => {
  const limits = ['--limit-failed-logins', '1', '--limit-failed-enrollments', '2', '--limit-requests', '9'];
  const { url, says } = await startServing(makeFolder(), ...limits, '--metrics', '127.0.0.1:0');
  const metrics = /metrics at (\S+)/.exec(await says('metrics at'))?.[1] ?? '';
  const login = () => call(url, 'POST', '/api/auth/login', { body: { ...owner, password: 'wrong' } });
  const body = { enrollment_token: 'cpn_unknown', name: 'edge', public_key: Buffer.alloc(32, 1).toString('base64') };
  const enroll = () => call(url, 'POST', '/api/networks/enroll', { body });
  const asked = [login, login, enroll, enroll, enroll];
  const statuses: number[] = [];
  for (const ask of [...asked, ...Array.from({ length: 5 }, () => () => call(url, 'GET', '/healthz'))]) {
    const { status, headers } = await ask();
    statuses.push(status);
    if (status === 429) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  }
  expect(statuses).toEqual([401, 429, 401, 401, 429, 200, 200, 200, 200, 429]);
  expect(await (await fetch(metrics)).text()).toContain('cpn_rate_limited_total{route="/healthz"} 1');
});

test('the addresses of proxies are believed as they were given', async () => {
  const { url, says } = await startServing(makeFolder(), '--trust-proxy', '10.0.0.0/8,127.0.0.1');
  await call(url, 'GET', '/api/networks', { headers: { 'x-forwarded-for': '203.0.113.7, 10.1.2.3' } });
  expect(await says('"route":"/api/networks"')).toContain('"address":"203.0.113.7"');
});

test.each([
  [['--trust-proxy', '0.0.0.0/0'], /--trust-proxy "0.0.0.0\/0" would trust every client/],
  [['--trust-proxy', '10.0.0.1/8'], /--trust-proxy "10.0.0.1\/8" has host bits set/],
  [
    ['--trust-proxy', 'loopback'],
    /--trust-proxy "loopback" is neither a CIDR nor an address; write it like 10\.0\.0\.0\/8 or 10\.77/,
  ],
  [['--tls-cert', 'cert.pem'], /--tls-cert and --tls-key go together/],
  [['--metrics', '9090'], /--metrics "9090" is not an address to listen on/],
  [['--limit-requests', '0'], /--limit-requests "0" is not a number from 1 to 1000000/],
  [['--limit-peer-changes', 'no'], /--limit-peer-changes "no" is not a number from 1 to 1000000/],
  [['--webhook', 'https://hooks.example.net'], /--webhook and --webhook-secret-file go together/],
  [['--webhook-allow', '10.0.0.1'], /--webhook-events and --webhook-allow are for a webhook; give --webhook too/],
  [['--listen', '8787'], /--listen "8787" is not an address to listen on/],
])('%j is wrong usage', async (flags, expected) => {
  const { code, said } = await failServing(makeFolder(), ...flags);
  expect([code, said]).toEqual([2, expect.stringMatching(expected)]);
});

describe('a webhook', () => {
  const secret = `whsec_${Buffer.alloc(32, 'key').toString('base64')}`;
  const failWith = (mode: number, text: string, ...flags: string[]) => {
    const folder = makeFolder();
    const file = join(folder, 'secret');
    writeFileSync(file, text, { mode });
    const given = flags.includes('--webhook') ? [] : ['--webhook', 'https://hooks.example.net/T0P'];
    return failServing(folder, ...given, '--webhook-secret-file', file, ...flags);
  };

  test.each<[string, Parameters<typeof failWith>, RegExp]>([
    ['whose secret others can read', [0o644, secret], /secret can be read by others \(mode 0644\); type: chmod 600 \//],
    [
      'whose secret is no such secret',
      [0o600, 'T0P'],
      /--webhook-secret-file does not hold "whsec_" and the base64 of/,
    ],
    [
      'with an unknown type',
      [0o600, secret, '--webhook-events', 'a,b'],
      /--webhook-events "a" is not a type of events;/,
    ],
    ['at loopback', [0o600, secret, '--webhook', 'https://[::1]/T0P'], /add --webhook-allow ::1/],
    ['by http', [0o600, secret, '--webhook', 'http://hooks.example.net/T0P'], /--webhook is plain http; use https/],
  ])('%s is refused at start', async (_, given, message) => {
    const { code, said } = await failWith(...given);
    expect(said).toMatch(message);
    expect(said).not.toMatch(/T0P|whsec_\w/);
    // The unit does not start it again after this code.
    expect(code).toBe(2);
  });
});
