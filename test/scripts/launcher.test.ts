import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Process } from '../lab/process.ts';
import { run } from '../lab/run.ts';

/** Prints which Node runs it and with what, exits with the first argument, or waits for a signal. */
const MAIN = `exports.main = () => {
const [first, ...rest] = process.argv.slice(2);
if (first === 'wait') { process.on('SIGTERM', () => process.exit(9)); setInterval(() => {}, 1000); }
else process.exitCode = Number(first) || 0;
const lean = process.execArgv.filter((flag) => /semi-space|liftoff|sparkplug|bytecode|old-space|maglev/.test(flag));
const arenas = process.env.MALLOC_ARENA_MAX ?? [];
console.log(JSON.stringify([process.execPath, process.env.PRETENDS ?? '', first, ...rest, ...lean].concat(arenas)));
};`;

const PRETEND_OLD =
  'data:text/javascript,Object.defineProperty(process,"versions",{value:{node:"20.1.0"}});process.env.PRETENDS="old"';
const ARCH = `node-linux-${process.arch}`;

let folder: string;

/** A folder with the package in it, and a private Node at `privateNode`, which prints that. */
function install(name: string, packageFolder: string, privateNode?: string): string {
  const root = join(folder, name);
  const dist = join(root, packageFolder, 'dist');
  mkdirSync(dist, { recursive: true });
  writeFileSync(join(dist, '..', 'package.json'), '{"type":"module"}');
  writeFileSync(join(dist, 'main.cjs'), MAIN);
  for (const file of ['cpn.js', 'start.cjs', 'load.cjs']) {
    copyFileSync(join(import.meta.dirname, '..', '..', 'packaging', file), join(dist, file));
  }
  if (privateNode !== undefined) {
    const bin = join(root, privateNode, ARCH, 'bin');
    mkdirSync(bin, { recursive: true });
    // Works as a copy would, without its 120 MB.
    writeFileSync(join(bin, 'node'), `#!/bin/sh\nPRETENDS=private exec "${process.execPath}" "$@"\n`, { mode: 0o755 });
  }
  return join(dist, 'cpn.js');
}

const path = (...folders: string[]): Record<string, string> => ({ PATH: [...folders, '/usr/bin', '/bin'].join(':') });

async function launch(
  argv: readonly string[],
  env: Record<string, string>,
): Promise<{ exitCode: number | null; said: unknown }> {
  const { stdout, stderr, exitCode } = await run(argv, { env, allowFailure: true });
  return { exitCode, said: stdout === '' ? stderr : JSON.parse(stdout) };
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-launcher-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  ['in the package', 'lib/cpn', 'lib/cpn/node_modules'],
  ['hoisted next to the package', 'node_modules/cpn', 'node_modules'],
])('run by itself, it takes the private Node %s, also through links', async (name, packageFolder, privateNode) => {
  const program = install(name, packageFolder, privateNode);
  const expected = { exitCode: 3, said: [process.execPath, 'private', '3', 'a b', '*'] };
  expect(await launch([program, '3', 'a b', '*'], path())).toEqual(expected);
  const links = join(folder, `${name} links`);
  mkdirSync(links);
  symlinkSync(program, join(links, 'one'));
  symlinkSync('one', join(links, 'cpn'));
  expect(await launch([join(links, 'cpn'), '3', 'a b', '*'], path())).toEqual(expected);
  expect(await launch(['sh', '-c', 'cpn 3 "a b" "*"'], path(links))).toEqual(expected);
});

test('run by itself through a link, it resolves the link without another program', async () => {
  const program = install('trap', 'lib/cpn', 'lib/cpn/node_modules');
  const trap = join(folder, 'trap', 'bin');
  const sprung = join(folder, 'trap', 'sprung');
  mkdirSync(trap);
  for (const tool of ['readlink', 'node', 'sh', 'profile']) {
    writeFileSync(join(trap, tool), `#!/bin/sh\necho ${tool} >>'${sprung}'\n`, { mode: 0o755 });
  }
  symlinkSync(program, join(trap, 'cpn'));
  const profile = join(trap, 'profile');
  for (const PATH of [`${trap}:/usr/bin:/bin`, trap]) {
    const env = { PATH, BASH_ENV: profile, ENV: profile };
    expect(await launch([join(trap, 'cpn'), '0'], env)).toEqual({
      exitCode: 0,
      said: [process.execPath, 'private', '0'],
    });
  }
  expect(existsSync(sprung)).toBe(false);
});

test('its parts name each other from their own folders, and each is run once', async () => {
  const program = install('parts', 'cpn');
  const dist = dirname(program);
  const part = (name: string, text: string) => writeFileSync(join(dist, name), text);
  mkdirSync(join(dist, 'parts', 'node_modules', 'inner'), { recursive: true });
  part('main.cjs', `exports.main = () => console.log(JSON.stringify(require('./parts/outer.cjs').list()));`);
  part(
    'parts/outer.cjs',
    `exports.list = () => [inner.runs, inner.outer === exports]; const inner = require('./inner.cjs');`,
  );
  part(
    'parts/inner.cjs',
    `exports.runs = (globalThis.runs = (globalThis.runs ?? 0) + 1); exports.outer = require('../parts/outer.cjs');`,
  );
  for (const trap of [
    'inner.cjs',
    'inner.cjs.js',
    join('parts', 'inner.cjs.js'),
    join('parts', 'node_modules', 'inner', 'index.js'),
  ])
    part(trap, `throw new Error('another file was run');`);
  expect(await launch([process.execPath, program], path())).toEqual({ exitCode: 0, said: [1, true] });
});

test('run by itself without a private Node, it takes the one on PATH', async () => {
  const program = install('bare', 'cpn');
  expect(await launch([program, '0'], path(dirname(process.execPath)))).toEqual({
    exitCode: 0,
    said: [process.execPath, '', '0'],
  });
});

test('run by a new Node, it is a module', async () => {
  const program = install('module', 'cpn', 'cpn/node_modules');
  expect(await launch([process.execPath, program, '4'], path())).toEqual({
    exitCode: 4,
    said: [process.execPath, '', '4'],
  });
});

test('run by an old Node, it hands over to the private one, and passes on signals and the exit code', async () => {
  const program = install('old', 'cpn', 'cpn/node_modules');
  const argv = [process.execPath, `--import=${PRETEND_OLD}`, program];
  expect(await launch([...argv, '5', 'x'], path())).toEqual({
    exitCode: 5,
    said: [process.execPath, 'private', '5', 'x'],
  });
  const daemon = new Process([...argv, 'wait'], { env: path() });
  await daemon.waitForLine(/wait/);
  expect((await daemon.stop()).exitCode).toBe(9);
});

test('run by an old Node alone, it names what it needs', async () => {
  const program = install('old-alone', 'cpn');
  const { exitCode, said } = await launch([process.execPath, `--import=${PRETEND_OLD}`, program, '0'], path());
  expect(exitCode).toBe(1);
  expect(said).toMatch(/^cpn needs Node 22\.19 or newer; this is v\d+\.\d+\.\d+\n$/);
});

test.each([
  ['a private Node', 'lean', 'cpn/node_modules'],
  ['the one on PATH', 'lean-bare', undefined],
])('run by itself, it has what stays take no memory in advance: %s', async (_, name, privateNode) => {
  const program = install(name, 'cpn', privateNode);
  const env = path(dirname(process.execPath));
  const node = [process.execPath, privateNode === undefined ? '' : 'private'];
  const said = async (words: string[], given = env) => (await launch([program, ...words], given)).said;
  const lean = ['--max-semi-space-size=1', '--liftoff-only', '--no-sparkplug'];
  lean.push('--bytecode-old-age=1', '--initial-old-space-size=8', '--invocation-count-for-maglev=2000');
  expect(await said(['run'])).toEqual([...node, 'run', ...lean, '1']);
  expect(await said(['run', '--interval', '2'])).toEqual([...node, 'run', '--interval', '2', ...lean, '1']);
  expect(await said(['run'], { ...env, MALLOC_ARENA_MAX: '4' })).toEqual([...node, 'run', ...lean, '4']);
  const serve = ['control-plane', 'serve'];
  expect(await said(serve)).toEqual([...node, ...serve, '--max-semi-space-size=4', '1']);
  for (const words of [['0', 'run'], ['runs'], ['control-plane', 'backup']]) {
    expect(await said(words)).toEqual([...node, ...words]);
  }
});
