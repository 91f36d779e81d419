import { once } from 'node:events';
import { expect, test } from 'vitest';
import { untilLeft } from '../databases.ts';
import { enroll, makeFolder, makeKey, makeNetwork, owner, publicKey, type Reply, startPlane } from '../harness.ts';
import { startProcess } from '../start-process.ts';

test('a kill -9 loses no enrolment that was acknowledged, and takes no use without its peer', async () => {
  const dataDir = makeFolder();
  const { child, ...remote } = await startProcess(dataDir);
  const login = await remote.call('POST', '/api/auth/login', { body: owner });
  const token = login.body.data.access_token;
  const network = await makeNetwork(remote, token);
  const keys = await Promise.all(Array.from({ length: 20 }, () => makeKey(remote, token, network)));

  const acknowledged: Reply[] = [];
  let killed = false;
  await Promise.all(
    keys.flatMap((key) =>
      Array.from({ length: 10 }, async () => {
        const reply = await enroll(remote, key, { public_key: publicKey() }).catch(() => null);
        if (reply?.status === 201) acknowledged.push(reply);
        if (acknowledged.length < 60 || killed) return;
        killed = true;
        child.kill('SIGKILL');
      }),
    ),
  );
  if (child.signalCode === null) await once(child, 'exit');
  expect(child.signalCode).toBe('SIGKILL');
  expect(acknowledged.length).toBeLessThan(200);
  await untilLeft(dataDir);

  const plane = await startPlane({ dataDir, owner: null, now: () => new Date() });
  const { data } = (await plane.call('GET', `/api/networks/${network}`, { token })).body;
  for (const { body } of acknowledged) expect(data.peers).toContainEqual(body.data.peer);
  const listed = await plane.call('GET', `/api/networks/${network}/enrollment-keys?all=true`, { token });
  const uses = listed.body.data.map((key: { uses: number }) => key.uses);
  expect(uses.reduce((sum: number, each: number) => sum + each, 0)).toBe(data.peers.length);
  expect(data.revision).toBe(1 + data.peers.length);
});
