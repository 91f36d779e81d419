import { createHash } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { RemovalStatus } from '../../../src/contract/removal.ts';
import { makeIdentity, proveEnrollment } from '../../../src/core/crypto/identity.ts';
import { parsePublicKey } from '../../../src/core/crypto/keys.ts';
import { eventually } from '../../lab/eventually.ts';
import { makeFolder, makeKey, publicKey, startPlane } from '../harness.ts';
import { actions, type OfficePeer, soon, startOffice } from './office.ts';

type Made = Awaited<ReturnType<typeof startOffice>>;

/** The requests of hosts that follow the map, and of the owner, at one control plane. */
function follow({ plane, network, token }: Pick<Made, 'plane' | 'network' | 'token'>) {
  const path = `/api/networks/${network}`;
  const etag = async () => (await plane.call('GET', path, { token })).headers.get('etag') ?? '';
  return {
    etag,
    /** A request of a host that has applied the revision of this ETag. */
    acknowledge: async (peer: OfficePeer, named?: string, headers: Record<string, string> = { 'a-im': 'cpn-delta' }) =>
      plane.call('GET', path, {
        token: peer.token,
        headers: { ...headers, 'if-none-match': named ?? (await etag()), 'user-agent': 'cpn/0.1.0' },
      }),
    suspend: (peer: OfficePeer, suspended = true) =>
      plane.call('PATCH', `${path}/peers/${peer.id}`, { token, body: { suspended } }),
    remove: (peer: OfficePeer) => plane.call('DELETE', `${path}/peers/${peer.id}`, { token }),
    removals: async (prefer?: string) => {
      const reply = await plane.call('GET', `${path}/removals`, { token, headers: prefer ? { prefer } : {} });
      return { ...RemovalStatus.parse(reply.body.data), applied: reply.headers.get('preference-applied') };
    },
  };
}

async function startFollowed(options: Parameters<typeof startOffice>[0] = {}) {
  const office = await startOffice(options);
  return { ...office, ...follow(office) };
}

const namesOf = ({ pending }: RemovalStatus) => pending.map(({ name }) => name);

test('a network in which nothing was removed has no pending host', async () => {
  const { one, acknowledge, removals } = await startFollowed();
  await acknowledge(one);
  expect(await removals()).toMatchObject({ revision: null, pending: [] });
});

test('the hosts that have not applied a removal are named until they ask for what came after it', async () => {
  const { one, two, three, acknowledge, suspend, removals, etag, untilState } = await startFollowed();
  const before = await etag();
  for (const peer of [one, two]) await acknowledge(peer, before);
  for (const peer of [one, two]) await untilState(peer, 'online');
  await suspend(three);
  expect(namesOf(await removals())).toEqual(['one', 'two']);
  await acknowledge(one);
  await eventually('one has applied it', async () => namesOf(await removals()).join() === 'two');
  // The host that requests the changes since the revision before has not applied it yet.
  expect((await acknowledge(two, before)).status).toBe(226);
  expect(namesOf(await removals())).toEqual(['two']);
  await acknowledge(two);
  await eventually('all have applied it', async () => namesOf(await removals()).length === 0);
});

test('a host whose first request is not stored yet is named once it has reported', async () => {
  const { one, three, report, remove, removals } = await startFollowed({
    healthTimes: { ...soon, settleMs: 60_000, flushMs: 60_000 },
  });
  expect((await report(one, {})).status).toBeLessThan(300);
  await remove(three);
  expect((await removals()).pending).toMatchObject([{ name: 'one', last_seen: expect.any(String) }]);
});

/** Enrols a host with cpn: it has an identity, and makes no request until its daemon runs. */
async function joinOnce(
  { plane, network, token }: Pick<Made, 'plane' | 'network' | 'token'>,
  name: string,
  seed: number,
) {
  const [key, public_key] = [await makeKey(plane, token, network), parsePublicKey(publicKey())];
  const identity = makeIdentity(new Uint8Array(32).fill(seed));
  const tokenHash = createHash('sha256').update(key).digest('hex');
  const { body } = await plane.call('POST', '/api/networks/enroll', {
    body: { enrollment_token: key, name, public_key },
    headers: {
      'peer-identity-key': identity.key,
      'peer-identity-proof': proveEnrollment(identity, { publicKey: public_key, tokenHash }),
    },
  });
  return { id: body.data.peer.id, name, token: body.data.access_token };
}

test('a host that joined without a daemon is named, unless it joined after the removal', async () => {
  const office = await startFollowed();
  const { plane, network, token, three, remove, removals, acknowledge } = office;
  const early = await joinOnce(office, 'early', 1);
  await remove(three);
  await joinOnce(office, 'late', 2);
  expect((await removals('wait=60')).pending).toEqual([
    { id: early.id, name: 'early', acknowledged_revision: null, last_seen: null },
  ]);
  await plane.call('PATCH', `/api/networks/${network}/peers/${early.id}`, { token, body: { name: 'renamed' } });
  expect(namesOf(await removals())).toEqual(['renamed']);
  await acknowledge(early);
  await eventually('it has applied it', async () => namesOf(await removals()).length === 0);
});

test('a host that names a revision without taking changes since it may have refused it', async () => {
  const { one, three, acknowledge, remove, removals, untilState } = await startFollowed();
  await acknowledge(one, undefined, {});
  await untilState(one, 'online');
  await remove(three);
  await acknowledge(one, undefined, {});
  await acknowledge(one, '*');
  await acknowledge(one, '"9999-nonce"');
  await new Promise((resolve) => setTimeout(resolve, 10 * soon.settleMs));
  expect(namesOf(await removals())).toEqual(['one']);
});

test('neither a change of another kind nor the return of a peer makes a host pending', async () => {
  const { plane, network, token, one, three, acknowledge, suspend, removals, untilState } = await startFollowed();
  await suspend(three);
  await acknowledge(one);
  await untilState(one, 'online');
  await eventually('it has applied it', async () => namesOf(await removals()).length === 0);
  await plane.call('PATCH', `/api/networks/${network}`, { token, body: { description: 'changed' } });
  expect(namesOf(await removals())).toEqual([]);
  await suspend(three, false);
  expect(await removals()).toMatchObject({ revision: null, pending: [] });
});

test('a reply waits while a host that made a request lately may apply it', async () => {
  const { one, three, acknowledge, remove, removals, untilState } = await startFollowed();
  await acknowledge(one);
  await untilState(one, 'online');
  await remove(three);
  const waiting = removals('wait=30');
  await acknowledge(one);
  expect(await waiting).toMatchObject({ pending: [], applied: 'wait=30' });
});

test('a silent host is named at once', async () => {
  const { plane, one, three, acknowledge, remove, removals, untilState } = await startFollowed();
  await acknowledge(one);
  await untilState(one, 'online');
  plane.clock.advance(130_000);
  await remove(three);
  expect(namesOf(await removals('wait=60'))).toEqual(['one']);
});

test('a host acknowledges at one control plane what another one shows, also after a restart', async () => {
  const dataDir = makeFolder();
  const office = await startFollowed({ dataDir });
  const { one, three, network, token } = office;
  await office.acknowledge(one);
  await office.untilState(one, 'online');
  await office.remove(three);
  expect(namesOf(await office.removals())).toEqual(['one']);
  await office.plane.server.close();
  const again = await startPlane({ dataDir, healthTimes: soon, now: office.plane.clock.now });
  onTestFinished(() => again.server.close());
  const after = { ...follow({ plane: again as Made['plane'], network, token }), ...actions(again, network, token) };
  expect(namesOf(await after.removals())).toEqual(['one']);
  await after.acknowledge(one);
  await eventually('it has applied it', async () => namesOf(await after.removals()).length === 0);
});

test('a peer may not read who has not applied a removal', async () => {
  const { plane, network, one } = await startFollowed();
  const reply = await plane.call('GET', `/api/networks/${network}/removals`, { token: one.token });
  expect(reply.status).toBe(403);
});
