import { createServer as createPlainServer } from 'node:http';
import { createServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Unreachable } from '../../../src/core/errors/index.ts';
import { makeCertificate } from '../certificate.ts';
import { connectPeerService } from '../described-service.ts';
import { failureOf, networkBody, unhurried } from '../samples.ts';
import { bytes, listen, serve, trust } from '../server.ts';

const token = new Secret('token-sample');

/** An https server, and whether a request came through to it. */
async function serveTls(certificate: { cert: string; key: string }) {
  let requests = 0;
  const server = createServer(certificate, (_, response) => {
    requests += 1;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data: networkBody() }));
  });
  const { port } = await listen(server);
  return { port, requests: () => requests };
}

async function read(port: number, host = 'localhost') {
  const { options, sleeps } = unhurried();
  const map = connectPeerService({ url: `https://${host}:${port}`, insecureHttp: false }, options).readMap(
    7,
    token,
    null,
  );
  return { map, sleeps };
}

describe('https', () => {
  test('reaches a host whose certificate is trusted', async () => {
    const certificate = makeCertificate();
    trust(certificate.cert);
    const { port, requests } = await serveTls(certificate);
    expect((await (await read(port)).map).map?.name).toBe('office');
    expect(requests()).toBe(1);
  });

  test.each([
    ['signed by an unknown authority', makeCertificate(), false, 'localhost', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ['expired', makeCertificate({ days: [-3, -2] }), true, 'localhost', 'CERT_HAS_EXPIRED'],
  ])('to a host whose certificate is %s is given up at once', async (_, certificate, trusted, host, code) => {
    if (trusted) trust(certificate.cert);
    const { port, requests } = await serveTls(certificate);
    const { map, sleeps } = await read(port, host);
    const failure = await failureOf(map);
    expect(failure).toBeInstanceOf(Unreachable);
    expect(failure).toMatchObject({ delivered: false });
    expect(failure.message).toContain(`(${code})`);
    expect(requests()).toBe(0);
    expect(sleeps).toEqual([]);
  });

  test('gives up at once where the port speaks plain http', async () => {
    let requests = 0;
    const { port } = await listen(
      createPlainServer(() => {
        requests += 1;
      }),
    );
    const { map, sleeps } = await read(port);
    const failure = await failureOf(map);
    expect(failure.message).toMatch(
      /the TLS handshake failed \(\S+\): https was tried, and the port may serve plain http .*; .*set --api to an http:/,
    );
    expect(requests).toBe(0);
    expect(sleeps).toEqual([]);
  });
});

describe('plain http', () => {
  test('reports at a port of https what to set, and not that this is the cause', async () => {
    const { port, requests } = await serveTls(makeCertificate());
    const address = { url: `http://127.0.0.1:${port}`, insecureHttp: false };
    const { message } = await failureOf(connectPeerService(address, unhurried().options).readMap(7, token, null));
    expect(message).toMatch(
      /whole reply came( \(ECONNRESET\))? \(.*; .*; if the port serves https, set --api to an https:\/\/ URL$/,
    );
    expect(requests()).toBe(0);
  });

  test('names no TLS as the cause at a forwarded port without a server', async () => {
    // As "ssh -L" does: it accepts, and closes.
    const { url } = await listen(createTcpServer((socket) => socket.on('data', () => socket.end())));
    const address = { url, insecureHttp: false };
    const { message } = await failureOf(connectPeerService(address, unhurried().options).readMap(7, token, null));
    expect(message).toMatch(
      /: the connection was closed before the whole reply came \(.*check that the control plane runs/,
    );
    expect(message).not.toMatch(/may serve|was tried/);
  });

  test('that nginx or Go refuses at a port of https says it too', async () => {
    const { address } = await serve(bytes(400, 'Client sent an HTTP request to an HTTPS server.\n'));
    const { message } = await failureOf(connectPeerService(address).readMap(7, token, null));
    expect(message).toMatch(/\(400\): Bad Request; http was tried: .*set --api to an https:\/\/ URL$/);
  });
});
