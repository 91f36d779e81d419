/** Control planes whose certificate may come from the CAs of `--ca-file` alone. */
import { createServer } from 'node:https';
import tls from 'node:tls';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { findTrustVariable } from '../../../src/api/http/environment-trust.ts';
import { probeService } from '../../../src/api/http/is-service-reachable.ts';
import { type Issued, ofAuthority, openAuthority, type Wanted } from '../certificate-authority.ts';
import { failureOf } from '../samples.ts';
import { listen, trust } from '../server.ts';

let issue: (wanted: Wanted) => Issued;
let root: Issued;

beforeEach(() => {
  ({ issue } = openAuthority());
  root = issue({ name: 'Office Root', extensions: ofAuthority });
});

async function serve(...chain: Issued[]) {
  let requests = 0;
  const cert = chain.map((each) => each.cert).join('');
  const server = createServer({ cert, key: chain[0]?.key }, (_, response) => {
    requests += 1;
    response.end();
  });
  server.on('tlsClientError', () => {});
  const { port } = await listen(server);
  const url = `https://localhost:${port}`;
  const reach = (...authorities: string[]) =>
    probeService({ url, insecureHttp: false, ...(authorities.length > 0 && { authorities }) }, 5_000);
  return { url, reach, requests: () => requests };
}

const authority = (name: string, more: Partial<Wanted> = {}) => issue({ name, extensions: ofAuthority, ...more });
const leafOf = (issuer: Issued) => issue({ name: 'localhost', issuer });

describe('with the CAs of a file', () => {
  test('a certificate of one of them is accepted', async () => {
    const { reach } = await serve(leafOf(root));
    await expect(reach()).rejects.toThrow('Office Root');
    await expect(reach(authority('Other Root').cert, root.cert)).resolves.toMatchObject({ date: expect.anything() });
  });

  test('a certificate of another CA is refused, also of one that this machine trusts', async () => {
    trust(root.cert);
    const { reach, requests } = await serve(leafOf(root), root);
    await reach();
    const failure = await failureOf(reach(authority('Other Root').cert));
    expect(failure.message).toMatch(
      /"Office Root" issued its TLS certificate, and this host accepts only "Other Root", from --ca-file \(SELF_SIGNED_CERT_IN_CHAIN\)/,
    );
    expect(failure.message).toMatch(/cpn set --ca-file FILE.*"--ca-file none" accepts the CAs of/);
    expect(requests()).toBe(1);
  });

  test('a new CA of the same name is another CA', async () => {
    const { reach } = await serve(leafOf(root));
    const failure = await failureOf(reach(authority('Office Root').cert));
    expect(failure.message).toMatch(/accepts only "Office Root", from --ca-file/);
  });

  test('an intermediate certificate is enough, and so is a certificate that is its own issuer', async () => {
    const intermediate = authority('Office Intermediate', { issuer: root });
    await (await serve(leafOf(intermediate), intermediate)).reach(intermediate.cert);
    const own = issue({ name: 'localhost' });
    await (await serve(own)).reach(own.cert);
  });

  test('a CA that expired since is named, with the file as the place to replace it', async () => {
    const old = authority('Old Root', { days: [-9, -2] });
    const { reach } = await serve(leafOf(old));
    const failure = await failureOf(reach(old.cert));
    expect(failure.message).toMatch(/the CA "Old Root" of --ca-file expired on 20.* \(CERT_HAS_EXPIRED\)/);
    expect(failure.message).toMatch(/replaces it to a file in PEM, and give it as --ca-file/);
  });

  test('a name that is not in the certificate is refused as without them', async () => {
    const { reach } = await serve(issue({ name: 'cp', issuer: root, extensions: ['subjectAltName=DNS:cp'] }));
    expect(await failureOf(reach(root.cert))).toMatchObject({ name: 'Intercepted' });
  });
});

describe('the variable by which a process trusts the CA', () => {
  test('is found where the daemon would not accept the certificate, and only there', async () => {
    const { url } = await serve(leafOf(root));
    trust(root.cert);
    const at = { url, insecureHttp: false };
    const find = (environment: Record<string, string>, service = at) => findTrustVariable(service, environment);
    const own = { NODE_EXTRA_CA_CERTS: '/root/ca.pem' };
    expect(await find(own)).toEqual({ name: 'NODE_EXTRA_CA_CERTS', path: '/root/ca.pem' });
    expect(await find({ SSL_CERT_FILE: '/root/ca.pem' })).toMatchObject({ name: 'SSL_CERT_FILE' });
    expect(await find({ SSL_CERT_FILE: '/etc/ssl/certs/ca-certificates.crt', SSL_CERT_DIR: '' })).toBeNull();
    expect(await find(own, { ...at, url: url.replace('https', 'http') })).toBeNull();
    const service = { ...at, authorities: [root.cert] };
    expect(await find(own, service)).toBeNull();
  });

  test('is none where no control plane answers', async () => {
    const service = { url: 'https://unknown.invalid', insecureHttp: false };
    expect(await findTrustVariable(service, { NODE_EXTRA_CA_CERTS: '/root/ca.pem' })).toBeNull();
  });

  test.each([
    ['NODE_EXTRA_CA_CERTS', '/root/ca.pem', true],
    ['SSL_CERT_FILE', '/root/ca.pem', true],
    ['SSL_CERT_DIR', '/root/certs', true],
    ['SSL_CERT_FILE', '', false],
    ['SSL_CERT_FILE', '/etc/ssl/cert.pem', false],
    ['SSL_CERT_FILE', '/etc/ssl/certs/ca-certificates.crt', false],
    ['SSL_CERT_FILE', '/etc/ssl/certs/own.crt', true],
    ['SSL_CERT_DIR', '/etc/ssl/certs', false],
    ['SSL_CERT_DIR', '/etc/ssl/certs/', false],
    ['SSL_CERT_DIR', '/etc/ssl/own', true],
    ['SSL_CERT_FILE', '/etc/pki/tls/certs/ca-bundle.crt', false],
    ['SSL_CERT_FILE', '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem', false],
    ['SSL_CERT_FILE', '/etc/pki/own.pem', true],
    ['HTTPS_PROXY', '/root/ca.pem', false],
  ])('is %s with %j, or not', async (name, path, is) => {
    const { url } = await serve(leafOf(root));
    const found = await findTrustVariable({ url, insecureHttp: false }, { [name]: path });
    expect(found).toEqual(is ? { name, path } : null);
  });

  const extra = { NODE_EXTRA_CA_CERTS: '/root/ca.pem' };
  test.each<[string, Record<string, string>, string, string | null]>([
    ['none where Node has the CA', extra, 'bundled', null],
    ['none where this machine has it', extra, 'system', null],
    [
      'one that Node reads in place of those of this machine',
      { SSL_CERT_FILE: '/root/ca.pem' },
      'system',
      'SSL_CERT_FILE',
    ],
    ['the first of several', { ...extra, SSL_CERT_DIR: '/root/certs' }, 'system', 'NODE_EXTRA_CA_CERTS'],
  ])('is %s', async (_which, environment, store, name) => {
    const { url } = await serve(leafOf(root));
    const read = vi.spyOn(tls, 'getCACertificates').mockImplementation((type) => (type === store ? [root.cert] : []));
    onTestFinished(() => read.mockRestore());
    const found = await findTrustVariable({ url, insecureHttp: false }, environment);
    expect(found?.name ?? null).toBe(name);
  });
});
