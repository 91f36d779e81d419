import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { untilLeft } from '../databases.ts';
import { makeFolder, makeNetwork, owner, withDatabase } from '../harness.ts';
import { kill, type ServerProcess, startProcess } from '../start-process.ts';
import { accept, ignore, secretPath, signingSecret, startReceiver, webhookFlags } from './receiver.ts';

test('an event whose process is killed before the receiver accepted is sent again', async () => {
  const receiver = await startReceiver(ignore);
  const dataDir = makeFolder();
  const flags = webhookFlags(dataDir, receiver, 'network.updated');
  const start = () => startProcess(dataDir, ...flags);
  const first = await start();
  const token = await logIn(first);
  const network = await makeNetwork(first, token);
  await first.call('PATCH', `/api/networks/${network}`, { token, body: { name: 'lab' } });
  await receiver.has(1);
  expectNoSecret(first);
  await kill(first);
  await untilLeft(dataDir);
  await withDatabase(dataDir, async (db) => {
    const claimed = await db.selectFrom('deliveries').selectAll().executeTakeFirstOrThrow();
    expect(claimed.attempts).toBe(1);
    expect(Date.parse(claimed.next_at) - Date.now()).toBeGreaterThan(30_000);
    // The minute passes.
    await db.updateTable('deliveries').set({ next_at: claimed.created_at }).execute();
  });
  receiver.answer(accept);
  const second = await start();
  await receiver.has(2);
  const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
  expect(ids[0]).toMatch(/^evt_\d+_\d+$/);
  expect(ids[1]).toBe(ids[0]);
  expectNoSecret(second);
});

async function logIn(server: ServerProcess): Promise<string> {
  const { body } = await server.call('POST', '/api/auth/login', { body: owner });
  return body.data.access_token;
}

/** Neither what it said nor its arguments and variables have a secret. */
function expectNoSecret({ child, said }: ServerProcess): void {
  const shown = ['cmdline', 'environ'].map((name) => readFileSync(`/proc/${child.pid}/${name}`, 'latin1'));
  for (const text of [said(), ...shown]) {
    expect(text).not.toContain(signingSecret.slice('whsec_'.length));
    expect(text).not.toContain(secretPath);
  }
}
