import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import https from 'node:https';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { TlsFiles } from '../../../src/control-plane/http/tls-files.ts';
import { createTransport, defaultDeadlines } from '../../../src/control-plane/http/transport.ts';
import { makeCertificate } from '../../api/certificate.ts';
import { makeFolder } from '../harness.ts';

/** The servers of a name with two addresses, such as localhost. */
function serveTwice(tls: TlsFiles | null) {
  const transport = createTransport(tls, defaultDeadlines);
  const servers = [1, 2].map(() => transport.serverFactory(() => {}));
  onTestFinished(() => {
    for (const server of servers) server.close();
  });
  return { transport, servers };
}

function writePair() {
  const folder = makeFolder();
  const files = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  const { cert, key } = makeCertificate();
  writeFileSync(files.certificate, cert);
  writeFileSync(files.key, key, { mode: 0o600 });
  return { files, cert };
}

test('a reload gives the certificate to the servers of all addresses', () => {
  const { files, cert } = writePair();
  const { transport, servers } = serveTwice(files);
  const taken = servers.map((server) => vi.spyOn(server as https.Server, 'setSecureContext'));
  expect(transport.reload()).toBe(files.certificate);
  for (const spy of taken) expect(spy.mock.calls).toEqual([[expect.objectContaining({ cert: Buffer.from(cert) })]]);
});

test('a TLS handshake has the time that headers have', () => {
  const create = vi.spyOn(https, 'createServer');
  onTestFinished(() => create.mockRestore());
  serveTwice(writePair().files);
  for (const [options] of create.mock.calls)
    expect(options).toMatchObject({ handshakeTimeout: defaultDeadlines.headers });
  expect(create.mock.calls).toHaveLength(2);
});

test('the end is that of the servers of all addresses', async () => {
  const { transport, servers } = serveTwice(null);
  for (const server of servers) await once(server.listen(0, '127.0.0.1'), 'listening');
  const closed = servers.map((server) => vi.spyOn(server, 'closeAllConnections'));
  await transport.connections.end();
  expect(servers.map(({ listening }) => listening)).toEqual([false, false]);
  transport.closeAllConnections();
  expect(closed.map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
});
