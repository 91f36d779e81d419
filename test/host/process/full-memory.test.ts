import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { run } from '../../lab/run.ts';

const source = join(import.meta.dirname, '..', '..', '..', 'src');
/** More than the memory of all users holds, in whole pages. */
const bytes = 20 * 4096;

/**
 * Runs tools that read and print so many bytes, again and again, while another user fills /dev/shm, and then with room in it. Returns
 * what became of each, and whether a tool ran on input that was cut.
 */
async function runTools(mounts: string) {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-full-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const tools = join(folder, 'tools');
  mkdirSync(tools);
  const install = (name: string, script: string) => {
    writeFileSync(join(tools, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(tools, name), 0o755);
  };
  install('wg', `read="$(wc -c)"; [ "$read" = ${bytes} ] || echo "$read" >${folder}/cut; echo "$read"`);
  install('ip', `head -c ${bytes} /dev/zero | tr '\\0' x; exit 0`);
  const script = join(folder, 'script.ts');
  writeFileSync(
    script,
    `import { execFileSync } from 'node:child_process';
import { Secret } from '${source}/core/crypto/secret.ts';
import { OutputCache } from '${source}/host/process/output-cache.ts';
import { runFrom } from '${source}/host/process/run.ts';
const run = runFrom(['${tools}', '/usr/bin', '/bin']);
const outcomes = async () => {
  const all = [];
  for (let round = 0; round < 3; round += 1) {
    const set = run('wg', ['set'], { input: new Secret('k'.repeat(${bytes})) });
    all.push(await set.then((said) => Number(said), (error) => error.name));
    const show = run('ip', ['show'], { outputCache: new OutputCache() });
    all.push(await show.then((said) => said.length, (error) => error.name));
  }
  return all;
};
const full = await outcomes();
execFileSync('mount', ['-o', 'remount,size=10m', '/dev/shm']);
console.log(JSON.stringify([full, await outcomes()]));
process.exit();`,
  );
  const mount = `mount -t tmpfs -o size=40k none /dev/shm && ${mounts} && exec ${process.execPath} ${script}`;
  const { stdout } = await run(['unshare', '--mount', 'sh', '-ec', mount]);
  const [full, roomy] = JSON.parse(stdout);
  return { full, roomy, isCut: existsSync(join(folder, 'cut')) };
}

const whole = Array(6).fill(bytes);

test('a tool runs on all of its input or not at all, and cut output is an error, where memory is full', async () => {
  const { full, roomy, isCut } = await runTools('mount --bind /usr/share /run');
  expect(full).toEqual(Array(6).fill('DiskFailed'));
  expect(roomy).toEqual(whole);
  expect(isCut).toBe(false);
});

test('other users cannot fill the memory that tools are given', async () => {
  expect(await runTools('mount -t tmpfs none /run')).toEqual({ full: whole, roomy: whole, isCut: false });
});
