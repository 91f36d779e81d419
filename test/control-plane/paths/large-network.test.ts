import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { insertPeer } from '../../../src/control-plane/store/peers/peers.ts';
import { withDatabase } from '../harness.ts';
import { attemptIn, type PathPeer, startPaths, startTrying } from './paths-office.ts';

const peers = 1_000;
const pairs = 20;

test('in a network of 1,000 hosts the pairs that exchange packets try, and no other host does anything', async () => {
  const office = await startPaths({}, '10.77.0.0/16');
  const { plane, network, add, state, take } = office;
  const talking: PathPeer[] = [];
  for (let count = 0; count < 2 * pairs; count += 1) talking.push(await add());
  await withDatabase(plane.dataDir, async (db) => {
    for (let count = talking.length; count < peers; count += 1) {
      const name = `quiet-${count}`;
      await insertPeer(db, {
        ...{ network_id: network, name, label: name, peer_type: 'admin_device', created_at: new Date().toISOString() },
        ...{ public_key: randomBytes(32).toString('base64'), previous_key: null },
        ...{ address: `10.77.${100 + (count >> 8)}.${count & 255}`, token_hash: randomBytes(32).toString('base64url') },
      });
    }
  });
  const tried = new Set<number>();
  for (let at = 0; at < talking.length; at += 2) {
    const [one, two] = talking.slice(at, at + 2);
    if (!one || !two) return expect.unreachable();
    const [toOne, toTwo] = await startTrying({ ...office, one, two }, [['192.168.1.7:51820'], ['192.168.1.8:51820']]);
    const attempt = attemptIn(toOne);
    await state(one, { proven: [{ peer: two.id, attempt }] });
    await state(two, { proven: [{ peer: one.id, attempt }] });
    const messages = [...toOne, ...toTwo, ...(await take(one)), ...(await take(two))];
    // What an attempt costs each host, in addition to its own statements.
    expect(JSON.stringify(messages).length / 2).toBeLessThan(1_000);
    for (const { kind, data } of messages) if (kind === 'try') tried.add(data.peer);
  }
  expect(tried).toEqual(new Set(talking.map(({ id }) => id)));
  const left = await withDatabase(plane.dataDir, (db) => db.selectFrom('peer_messages').selectAll().execute());
  expect(left).toEqual([]);
});
