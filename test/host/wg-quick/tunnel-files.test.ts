import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { applyCommands } from '../../../src/host/wg-quick/apply-commands.ts';
import { tunnelFiles } from '../../../src/host/wg-quick/tunnel-files.ts';
import { holdCall } from '../../lab/hold-call.ts';
import { makePeer, newKeyPair } from '../samples.ts';
import { address } from '../steps.ts';

const device = { ...newKeyPair(), listenPort: 51820, fwmark: null, peers: [] };
const one = applyCommands({ file: null, device, addresses: [] }, [{ add: 'address', address }]);
const other = { ...one, config: { ...one.config, peers: [makePeer()] } };

async function open() {
  const parent = await mkdtemp(join(tmpdir(), 'cpn-tunnels-'));
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  return { parent, files: tunnelFiles(join(parent, 'tunnels')) };
}

test('what a process that was killed left of a file goes with it, and the folder with the last one', async () => {
  const { parent, files } = await open();
  await files.write('cpn0', one);
  await writeFile(`${files.path('cpn0')}.tmp`, 'a key');
  await files.remove('cpn0');
  expect(await readdir(parent)).toEqual([]);
});

test('a reader sees the former file until the new one is whole', async () => {
  const { files } = await open();
  await files.write('cpn0', one);
  const rename = holdCall('rename');
  const writing = files.write('cpn0', other);
  await rename.reached;
  expect(await files.read('cpn0')).toEqual(one);
  expect(await files.list()).toEqual(['cpn0']);
  rename.release();
  await writing;
  expect(await files.read('cpn0')).toEqual(other);
});

test('no file is written where other users may write', async () => {
  const { files, parent } = await open();
  await files.write('cpn0', one);
  await chmod(join(parent, 'tunnels'), 0o777);
  await expect(files.write('cpn0', other)).rejects.toMatchObject({ name: 'NotOurs' });
});
