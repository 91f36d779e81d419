import { spawn } from 'node:child_process';
import { createServer as createPlain } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { probeService } from '../../../src/api/http/is-service-reachable.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Unreachable } from '../../../src/core/errors/index.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import { ofAuthority, openAuthority } from '../certificate-authority.ts';
import { connectPeerService } from '../described-service.ts';
import { failureOf, unhurried } from '../samples.ts';
import { listen, trust } from '../server.ts';
import { startFailingServers } from '../tls-servers.ts';

const token = new Secret('token-sample');

test('each error of TLS has its own problem and remedy, and no request is sent', async () => {
  const { servers, requests } = await startFailingServers();
  const remedies = new Set<string>();
  for (const { what, port, problem, remedy, hostRemedy = remedy } of servers) {
    const address = { url: `https://localhost:${port}`, insecureHttp: false };
    const { options, sleeps } = unhurried({ attempts: 1 });
    const failures = [
      await failureOf(connectPeerService(address, options).readMap(7, token, null)),
      // cpn doctor
      await failureOf(probeService(address, 5_000)),
    ];
    for (const failure of failures) {
      expect(failure, what).toBeInstanceOf(Unreachable);
      const { facts, remedy: found, message } = failure as Unreachable;
      expect(facts.problem, what).toMatch(problem);
      expect(found, what).toMatch(remedy);
      expect(found, what).toMatch(hostRemedy);
      expect(message, what).toContain(found);
      remedies.add(`${found}`.replaceAll(String(port), ''));
    }
    expect(sleeps, what).toEqual([]);
  }
  expect(requests()).toBe(0);
  // The two chains that lack only a root have the same remedy.
  expect(remedies.size).toBe(servers.length - 1);
});

/** A proxy that makes tunnels, over https with a certificate, and what it received. */
async function startProxy(certificate: { cert: string; key: string } | null) {
  const authorizations: (string | undefined)[] = [];
  const proxy = certificate === null ? createPlain() : createHttps(certificate);
  proxy.on('connect', (request, client) => {
    authorizations.push(request.headers['proxy-authorization']);
    const origin = connect(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      client.pipe(origin).pipe(client);
    });
    for (const socket of [client, origin]) socket.on('error', () => origin.destroy());
  });
  const { port } = await listen(proxy);
  const url = `http${certificate === null ? '' : 's'}://user:hunter2@localhost:${port}`;
  return { authorizations, proxy: parseProxy(url, '--proxy') };
}

test('through a proxy the certificate of the control plane is described, and only a trusted proxy gets credentials', async () => {
  const { issue } = openAuthority();
  const root = issue({ name: 'Trusted Root', extensions: ofAuthority });
  const other = issue({ name: 'Other Root', extensions: ofAuthority });
  trust(root.cert);
  const extensions = ['subjectAltName=DNS:cp.example.net'];
  const expired = issue({ name: 'cp.example.net', issuer: root, extensions, days: [-9, -2] });
  const { port } = await listen(createHttps(expired));
  const read = async (proxy: Awaited<ReturnType<typeof startProxy>>['proxy']) =>
    failureOf(
      connectPeerService(
        { url: `https://cp.example.net:${port}`, insecureHttp: false, proxy },
        unhurried().options,
      ).readMap(7, token, null),
    );
  const plain = await startProxy(null);
  expect((await read(plain.proxy)).message).toMatch(
    /its TLS certificate expired on .* renew the certificate of the control/,
  );
  const secure = await startProxy(issue({ name: 'localhost', issuer: root }));
  expect((await read(secure.proxy)).message).toMatch(
    /its TLS certificate expired on .* renew the certificate of the control/,
  );
  const untrusted = await startProxy(issue({ name: 'localhost', issuer: other }));
  const failure = await read(untrusted.proxy);
  expect(failure.message).toMatch(/is unreachable: the certificate of "Other Root", .* the proxy must send/);
  expect(untrusted.authorizations).toEqual([]);
});

test('a client certificate that the server requires after the handshake is named', async () => {
  const { issue } = openAuthority();
  const { cert, certFile, keyFile } = issue({ name: 'localhost' });
  trust(cert);
  const own = ['-cert', certFile, '-key', keyFile, '-Verify', '1'];
  const server = spawn('openssl', ['s_server', '-accept', '127.0.0.1:0', ...own], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  onTestFinished(() => void server.kill('SIGKILL'));
  let port: string | undefined;
  for await (const line of createInterface(server.stdout)) {
    port = /^ACCEPT 127\.0\.0\.1:(\d+)/.exec(line)?.[1];
    if (port !== undefined) break;
  }
  const address = { url: `https://localhost:${port}`, insecureHttp: false };
  const { options, sleeps } = unhurried();
  const { message } = await failureOf(connectPeerService(address, options).readMap(7, token, null));
  expect(message).toMatch(
    /it requires a client certificate, and cpn sends none \(\S+_CERTIFICATE_REQUIRED\).*; turn off client certificates/,
  );
  expect(sleeps).toEqual([]);
});

test('texts of a certificate reach no terminal raw', async () => {
  const { issue } = openAuthority();
  const hostile = issue({ name: 'Office`; rm -rf \u001b[2J\u202e "CA"', extensions: ofAuthority });
  const { port } = await listen(createHttps(issue({ name: 'localhost', issuer: hostile })));
  const address = { url: `https://localhost:${port}`, insecureHttp: false };
  const { message } = await failureOf(connectPeerService(address, unhurried().options).readMap(7, token, null));
  expect(message).toContain('"Office rm -rf 1B[2J\ufffd CA"');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
  expect(message).not.toMatch(/[\u0000-\u001f\u202e`]/);
});
