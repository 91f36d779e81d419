import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { REPOSITORY } from '../lab/built-program.ts';
import { run } from '../lab/run.ts';

const stranger = 54_321;
const arch = process.arch === 'arm64' ? 'arm64' : 'x64';

/** A package in a folder like /tmp, with a private Node next to it, and a Node on PATH; each prints what it is. */
function unpack() {
  const shared = mkdtempSync(join(tmpdir(), 'cpn-shared-'));
  onTestFinished(() => rmSync(shared, { recursive: true }));
  chmodSync(shared, 0o1777);
  const [dist, path, folder] = [join(shared, 'app/dist'), join(shared, 'app/path'), join(shared, `node-linux-${arch}`)];
  for (const each of [dist, path, join(folder, 'bin')]) mkdirSync(each, { recursive: true });
  copyFileSync(join(REPOSITORY, 'packaging/cpn.js'), join(dist, 'cpn.js'));
  const node = join(folder, 'bin/node');
  const script = (file: string, name: string) => writeFileSync(file, `#!/bin/sh\necho ${name}\n`, { mode: 0o755 });
  script(join(dist, 'start.cjs'), 'start');
  script(node, 'private');
  script(join(path, 'node'), 'path');
  const start = async () => {
    const env = { PATH: `${path}:/usr/bin:/bin` };
    const { stdout, stderr } = await run(['/bin/sh', join(dist, 'cpn.js'), '--version'], { env });
    return [stdout, stderr];
  };
  return { shared, folder, node, start };
}

const skipped = (node: RegExp) => ['path\n', expect.stringMatching(node)];
const warning = /^cpn: skipped .*\/bin\/node: another user can change it\n$/;

test('the private Node starts where root alone can change it, also in a shared folder', async () => {
  const { start } = unpack();
  expect(await start()).toEqual(['private\n', '']);
});

test.each<[string, (tree: ReturnType<typeof unpack>) => void]>([
  ['a folder of another user', ({ folder }) => chownSync(folder, stranger, stranger)],
  ['a program of another user', ({ node }) => chownSync(node, stranger, stranger)],
  ['a program that others may write', ({ node }) => chmodSync(node, 0o757)],
  ['a folder that others may write in', ({ folder }) => chmodSync(folder, 0o777)],
  ['a shared folder without the sticky bit', ({ shared }) => chmodSync(shared, 0o777)],
])('%s is skipped', async (_what, plant) => {
  const tree = unpack();
  plant(tree);
  expect(await tree.start()).toEqual(skipped(warning));
});

test('a link of another user is skipped', async () => {
  const { shared, folder, start } = unpack();
  const real = join(shared, 'real');
  mkdirSync(join(real, 'bin'), { recursive: true });
  writeFileSync(join(real, 'bin/node'), '#!/bin/sh\necho planted\n', { mode: 0o755 });
  rmSync(folder, { recursive: true });
  symlinkSync(real, folder);
  await run(['chown', '-h', String(stranger), folder]);
  expect(await start()).toEqual(skipped(warning));
});

test('an older Node that runs the module skips it too', async () => {
  const { shared, folder, node } = unpack();
  const dist = join(shared, 'app/dist');
  const older = join(shared, 'older.mjs');
  writeFileSync(
    older,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.0.0' } });
     await import(${JSON.stringify(join(dist, 'cpn.mjs'))});`,
  );
  copyFileSync(join(REPOSITORY, 'packaging/cpn.js'), join(dist, 'cpn.mjs'));
  const startOlder = () => run([process.execPath, older], { allowFailure: true });
  expect((await startOlder()).stdout).toBe('private\n');
  for (const planted of [node, folder]) {
    chownSync(planted, stranger, stranger);
    expect(await startOlder()).toMatchObject({ stdout: '', exitCode: 1, stderr: expect.stringMatching(/needs Node/) });
    chownSync(planted, 0, 0);
  }
});
