import { describe, expect, test } from 'vitest';
import { connectAdminService } from '../../src/api/admin-service.ts';
import { parsePublicKey } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { parseEndpoint } from '../../src/core/net/endpoint.ts';
import { owner, startPlane } from '../control-plane/harness.ts';
import { connectPeerService } from './described-service.ts';
import { failureOf, keyOf, unhurried } from './samples.ts';

/** A control plane of our own with one network in it, seen by its owner. */
async function office() {
  const { url } = await startPlane();
  const address = { url, insecureHttp: false };
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
