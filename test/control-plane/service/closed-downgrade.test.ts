import { expect, test } from 'vitest';
import { NewerDatabase } from '../../../src/control-plane/errors.ts';
import { migrate } from '../../../src/control-plane/store/migrations/migrate.ts';
import { migrations, neededMigration } from '../../../src/control-plane/store/migrations/migrations.ts';
import { makeNetwork, startPlane, withDatabase } from '../harness.ts';

test('a version without rules does not start while a network is closed', async () => {
  const plane = await startPlane();
  const token = await plane.signIn('admin');
  const [one, other] = [await makeNetwork(plane, token), await makeNetwork(plane, token)];
  const set = async (network: number, mode: 'open' | 'closed') => {
    const reply = await plane.call('PUT', `/api/networks/${network}/rules`, { token, body: { mode } });
    expect(reply.status).toBe(200);
  };
  const earlier = Object.fromEntries(Object.entries(migrations).filter(([name]) => name < '0027'));
  const start = () => withDatabase(plane.dataDir, (db) => migrate(db, earlier, neededMigration));
  await start();
  for (const network of [one, other]) await set(network, 'closed');
  await expect(start()).rejects.toThrow(new NewerDatabase('0027-rules'));
  await set(one, 'open');
  await expect(start()).rejects.toThrow(NewerDatabase);
  await set(other, 'open');
  await start();
  await withDatabase(plane.dataDir, (db) => migrate(db));
});
