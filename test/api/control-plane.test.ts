import { writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { connectAdminService } from '../../src/api/admin-service.ts';
import type { TlsFiles } from '../../src/control-plane/http/tls-files.ts';
import { parsePublicKey } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { parseEndpoint } from '../../src/core/net/endpoint.ts';
import { makeFolder, owner, startPlane } from '../control-plane/harness.ts';
import { makeCertificate } from './certificate.ts';
import { connectPeerService } from './described-service.ts';
import { failureOf, keyOf, unhurried } from './samples.ts';
import { listen, trust } from './server.ts';

interface Frontend {
  readonly tls?: TlsFiles | null;
  /** Returns the address of what is in front of the control plane. */
  readonly proxy?: (url: string) => Promise<string>;
}

/** A control plane of our own with one network in it, seen by its owner. */
async function office({ tls = null, proxy = async (url: string) => url }: Frontend = {}) {
  const { url } = await startPlane({ tls });
  const address = { url: await proxy(url), insecureHttp: false };
  const { options, retries } = unhurried();
  const session = await connectAdminService(address, null, options).login(
    owner.email,
    new Secret(owner.password),
    'test',
  );
  const admin = connectAdminService(address, session.token, options);
  const network = await admin.createNetwork({
    name: 'office',
    private_cidr: '10.77.0.0/24',
    routes: ['192.168.10.0/24'],
  });
  return { address, admin, network, session, retries, peers: connectPeerService(address, options) };
}

describe('with our own control plane', () => {
  test('an administrator signs in, makes a network and a key, and signs out', async () => {
    const { admin, network, session, retries } = await office();
    expect(Date.parse(session.expiresAt ?? '')).toBeGreaterThan(0);
    expect(await admin.profile()).toMatchObject({ email: owner.email, role: 'owner' });
    expect(network).toMatchObject({
      name: 'office',
      private_cidr: '10.77.0.0/24',
      routes: ['192.168.10.0/24'],
      peers: [],
    });
    expect((await admin.listNetworks()).map(({ id }) => id)).toEqual([network.id]);
    const key = await admin.createKey(network.id, { name: 'k', max_uses: 2, expires_in_hours: 24 });
    expect(key).toMatchObject({ name: 'k', max_uses: 2, uses: 0 });
    expect(key.enrollment_token).toMatch(/^cpn_/);
    await admin.logout();
    expect(await failureOf(admin.profile())).toMatchObject({ name: 'Refused', status: 401 });
    expect(retries).toEqual([]);
  });

  test('a host enrols, again with the same key and id, reads its map, and leaves', async () => {
    const { admin, network, peers } = await office();
    const key = await admin.createKey(network.id, { name: 'k', max_uses: 1, expires_in_hours: 1 });
    const request = {
      token: new Secret(key.enrollment_token),
      name: 'host-1',
      type: 'connector' as const,
      publicKey: parsePublicKey(keyOf(1)),
      endpoint: parseEndpoint('203.0.113.22:51820'),
      idempotencyKey: '0123456789abcdef0123456789abcdef',
    };
    const first = await peers.enroll(request);
    const again = await peers.enroll(request);
    expect(again.peer).toEqual(first.peer);
    expect(first.peer).toMatchObject({ name: 'host-1', address: '10.77.0.1' });

    const token = first.accessToken ?? expect.unreachable();
    // The revision of the reply is the one under which the map is served.
    expect(await peers.readMap(network.id, token, first.map.revision)).toMatchObject({ map: null });
    const { map } = await peers.readMap(network.id, token, null);
    expect(map).toEqual(first.map);
    expect(map?.peers).toEqual([
      expect.objectContaining({ id: first.peer.id, type: 'connector', endpoint: request.endpoint }),
    ]);

    const seen = await admin.readNetwork(network.id);
    expect(seen.peers).toEqual([expect.objectContaining({ public_key: keyOf(1), endpoint: '203.0.113.22:51820' })]);

    const refusal = await failureOf(
      peers.enroll({ ...request, publicKey: parsePublicKey(keyOf(2)), idempotencyKey: 'other' }),
    );
    expect(refusal).toMatchObject({ name: 'Refused', status: 403 });

    await peers.removePeer(network.id, first.peer.id, token);
    expect((await admin.readNetwork(network.id)).peers).toEqual([]);
    await admin.deleteNetwork(network.id);
    expect(await failureOf(admin.readNetwork(network.id))).toMatchObject({ name: 'Refused', status: 404 });
  });

  test('a 422 names the field', async () => {
    const { admin } = await office();
    const failure = await failureOf(admin.createNetwork({ name: 'n', private_cidr: '8.8.8.0/24' }));
    expect(failure).toMatchObject({ name: 'Refused', status: 422 });
    expect(failure.message).toContain('private_cidr: ');
  });
});

/** A control plane over https, behind a proxy that counts connections and bytes in both directions. */
async function countedOffice() {
  const certificate = makeCertificate();
  trust(certificate.cert);
  const folder = makeFolder();
  const tls = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  writeFileSync(tls.certificate, certificate.cert);
  writeFileSync(tls.key, certificate.key, { mode: 0o600 });
  const counted = { connections: 0, chunks: 0, bytes: 0 };
  const count = ({ length }: Buffer) => {
    counted.chunks += 1;
    counted.bytes += length;
  };
  const proxy = async (url: string) => {
    const server = createServer((client) => {
      counted.connections += 1;
      const upstream = connect(Number(new URL(url).port), '127.0.0.1');
      for (const socket of [client, upstream]) socket.on('data', count).on('error', () => {});
      client.pipe(upstream).pipe(client);
    });
    return `https://localhost:${(await listen(server)).port}`;
  };
  return { ...(await office({ tls, proxy })), counted };
}

/** Of IPv4 and TCP with timestamps; each packet with content is acknowledged by another one. */
const packetHeaders = 2 * 52;
/** As the daemon sends them: every second long poll of 50 s leaves its connection to one. */
const minutesBetweenReports = 100 / 60;

test('an idle host sends and receives less than 1 KB a minute for its reports, over https too', async () => {
  const { address, admin, network, peers, counted } = await countedOffice();
  const key = await admin.createKey(network.id, { name: 'k', max_uses: 1, expires_in_hours: 1 });
  const { accessToken, map, peer } = await peers.enroll({
    ...{
      token: new Secret(key.enrollment_token),
      name: 'host-1',
      type: 'connector',
      publicKey: parsePublicKey(keyOf(1)),
    },
    ...{ endpoint: parseEndpoint('203.0.113.22:51820'), idempotencyKey: '0123456789abcdef0123456789abcdef' },
  });
  const token = accessToken ?? expect.unreachable();
  const follower = connectPeerService(address, { connection: 'keep' });
  const { signal } = new AbortController();
  const poll = () => follower.readMap(network.id, token, map.revision, { seconds: 1, signal });
  expect((await poll()).waited).toBe(true);
  const before = { ...counted };
  expect(await follower.report(network.id, peer.id, token, {}, signal)).toEqual({ reachableBy: 0, witnesses: 0 });
  const bytes = counted.bytes - before.bytes + (counted.chunks - before.chunks) * packetHeaders;
  expect(bytes).toBeGreaterThan(400);
  expect(bytes / minutesBetweenReports).toBeLessThan(1_024);
  await poll();
  expect(counted.connections).toBe(before.connections);
});
