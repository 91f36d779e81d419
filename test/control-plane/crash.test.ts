import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { Locked } from '../../src/core/errors.ts';
import {
  call,
  enroll,
  makeFolder,
  makeKey,
  makeNetwork,
  openPlane,
  owner,
  type Plane,
  publicKey,
  type Reply,
  startPlane,
} from './harness.ts';

test('a kill -9 loses no enrolment that was acknowledged, and takes no use without its peer', async () => {
  const dataDir = makeFolder();
  const { child, url } = await startProcess(dataDir);
  const remote = { call: (method, path, options) => call(url, method, path, options) } as Plane;
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

  const plane = await startPlane({ dataDir, owner: null, now: () => new Date() });
  const { data } = (await plane.call('GET', `/api/networks/${network}`, { token })).body;
  for (const { body } of acknowledged) expect(data.peers).toContainEqual(body.data.peer);
  const listed = await plane.call('GET', `/api/networks/${network}/enrollment-keys`, { token });
  const uses = listed.body.data.map((key: { uses: number }) => key.uses);
  expect(uses.reduce((sum: number, each: number) => sum + each, 0)).toBe(data.peers.length);
  expect(data.revision).toBe(1 + data.peers.length);
});

test('two processes do not share a folder, and one that was killed leaves it free', async () => {
  const dataDir = makeFolder();
  const { child } = await startProcess(dataDir);
  const refused = openPlane({ dataDir });
  await expect(refused).rejects.toThrow(Locked);
  await expect(refused).rejects.toThrow(`pid ${child.pid}`);
  child.kill('SIGKILL');
  await once(child, 'exit');
  const plane = await startPlane({ dataDir, owner: null });
  expect((await plane.call('GET', '/healthz')).status).toBe(200);
});

async function startProcess(dataDir: string): Promise<{ child: ChildProcess; url: string }> {
  const script = new URL('./server-process.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const [url] = await once(createInterface(child.stdout), 'line');
  return { child, url };
}
