import {
  appendFileSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { checkOriginals, patches } from '../../packaging/patches/patches.ts';
import { run } from '../lab/run.ts';

const root = join(import.meta.dirname, '../..');
const dist = join(root, 'dist');
const printed = `${packageJson.version}\n`;
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-build-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the built program', () => {
  it('prints its version, from each entry point', async () => {
    for (const argv of [[], [process.execPath]]) {
      expect((await run([...argv, join(dist, 'cpn.js'), '--version'])).stdout).toBe(printed);
    }
    const main = ['-e', 'require(process.argv[1]).main()', join(dist, 'main.cjs')];
    expect((await run([process.execPath, ...main, '--version'])).stdout).toBe(printed);
  });

  it('is ASCII, as it is read', () => {
    const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.cjs'));
    const others = files.filter((file) => /[\u0080-\uffff]/.test(readFileSync(join(dist, file), 'utf8')));
    expect([others, files.length > 50]).toEqual([[], true]);
  });

  it('loads nothing else for that', async () => {
    const alone = join(folder, 'start.cjs');
    copyFileSync(join(dist, 'start.cjs'), alone);
    expect((await run([process.execPath, alone, '--version'])).stdout).toBe(printed);
  });
});

describe('the built console', () => {
  it('is at most 92 KiB compressed, with a compressed file for each', () => {
    const files = readdirSync(join(dist, 'console'), { recursive: true, encoding: 'utf8' }).filter((file) =>
      /\.\w+$/.test(file),
    );
    const packed = files.filter((file) => file.endsWith('.gz'));
    expect(packed.map((file) => file.replace(/\.gz$/, '')).sort()).toEqual(
      files.filter((file) => !packed.includes(file)).sort(),
    );
    const bytes = packed.reduce((sum, file) => sum + statSync(join(dist, 'console', file)).size, 0);
    expect(bytes).toBeGreaterThan(10 * 1024);
    expect(bytes).toBeLessThan(92 * 1024);
  });
});

describe('what a daemon loads', () => {
  it('is neither HTTP/2 nor a second parser of HTTP/1', () => {
    const parts = readdirSync(join(dist, 'parts')).filter((file) => /^(connection|undici)/.test(file));
    const text = parts.map((file) => readFileSync(join(dist, 'parts', file), 'utf8')).join('');
    const found = ['llhttp', 'node:http2', 'milo_'].filter((each) => text.includes(each));
    expect(found).toEqual(['llhttp']);
  });
});

describe('a patch', () => {
  it('fails the build where the file that it was written for has changed', async () => {
    const copy = join(folder, 'changed');
    for (const name of ['scripts', 'packaging', 'package.json']) {
      cpSync(join(root, name), join(copy, name), { recursive: true });
    }
    const modules = join(copy, 'node_modules');
    mkdirSync(modules);
    for (const name of readdirSync(join(root, 'node_modules'))) {
      if (name !== 'undici') symlinkSync(join(root, 'node_modules', name), join(modules, name));
    }
    cpSync(join(root, 'node_modules/undici'), join(modules, 'undici'), { recursive: true });
    appendFileSync(join(modules, 'undici/lib/dispatcher/client-h1.js'), '\n');
    const argv = [process.execPath, join(copy, 'scripts/build.ts')];
    const { exitCode, stderr } = await run(argv, { allowFailure: true });
    expect(exitCode).toBe(1);
    expect(stderr).toContain('node_modules/undici/lib/dispatcher/client-h1.js is not the file that packaging/patches');
  });

  it('keeps the layout of the help from commands that print none', async () => {
    const counter = join(folder, 'segmenters.cjs');
    writeFileSync(
      counter,
      `const { Segmenter } = Intl;
      let made = 0;
      Intl.Segmenter = function (...given) { made += 1; return new Segmenter(...given); };
      process.on('exit', () => process.stderr.write('made ' + made));`,
    );
    const folders = { CPN_CONFIG_DIR: folder, CPN_STATE_DIR: folder, CPN_RUNTIME_DIR: folder };
    const env = { ...folders, NODE_OPTIONS: `--require=${counter}` };
    const count = async (...args: string[]) => {
      const { stderr } = await run([process.execPath, join(dist, 'start.cjs'), ...args], { env, allowFailure: true });
      return /made \d+$/.exec(stderr)?.[0];
    };
    expect([await count('status', '--json'), await count('status', '--help')]).toEqual(['made 0', 'made 1']);
  });

  it('is listed, has its reason and gain, and the sums of its originals', () => {
    const files = readdirSync(join(root, 'packaging/patches')).filter((file) => file.endsWith('.cjs'));
    expect(
      Object.values(patches)
        .map((path) => basename(path))
        .sort(),
    ).toEqual(files.sort());
    for (const path of Object.values(patches)) expect(readFileSync(path, 'utf8')).toMatch(/Reason: .*Gain: /s);
    expect(() => checkOriginals(join(root, 'node_modules'))).not.toThrow();
  });
});

describe('the parts of the program', () => {
  /** The parts that a command loads, without the hashes of their names. */
  const load = async (...args: string[]) => {
    const watcher = join(folder, 'loaded.cjs');
    const log = join(folder, 'loaded');
    writeFileSync(
      watcher,
      `process.on('exit', () => require('node:fs').writeFileSync(${JSON.stringify(log)},
        JSON.stringify(Object.keys(require('node:module')._cache))));`,
    );
    const folders = { CPN_CONFIG_DIR: folder, CPN_STATE_DIR: folder, CPN_RUNTIME_DIR: folder };
    const env = { ...folders, NODE_OPTIONS: `--require=${watcher}` };
    await run([process.execPath, join(dist, 'start.cjs'), ...args], { env, allowFailure: true });
    const files: string[] = JSON.parse(readFileSync(log, 'utf8'));
    const parts = files.flatMap((file) => /parts\/([\w-]+)-[\w-]{8}\.cjs$/.exec(file)?.[1] ?? []);
    return parts.filter((part) => part !== 'rolldown-runtime').sort();
  };
  /** The parts with a text in them. */
  const find = (text: string) =>
    readdirSync(dist, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.cjs') && readFileSync(join(dist, file), 'utf8').includes(text))
      .map((file) => file.replace(/^parts\/|-[\w-]{8}\.cjs$/g, ''));

  it('are loaded by the commands that use them', async () => {
    expect(await load()).toEqual(['start']);
    expect(await load('--help')).toEqual(['commands', 'commands-status', 'commands-status-up', 'commands-up']);
    const parts = await load('status');
    expect(parts).toContain('status');
    expect(parts).toContain('status-up');
    expect(parts).not.toContain('commands');
    expect(parts).not.toContain('up');
  });

  it('each have the modules that the same commands use', () => {
    expect(find('CpnError=class')).toEqual(['main.cjs']);
    expect(find('Create a private network')).toEqual(['commands']);
    expect(find('Show peers, routes and drift as observed on this host')).toEqual(['commands-status']);
    expect(find('/proc/net/dev')).toEqual(['status-up']);
  });
});

describe('the code that V8 keeps of the program', () => {
  const show = async (program: string, env: Record<string, string> = {}) =>
    (await run([process.execPath, join(program, 'start.cjs'), 'status', '--help'], { env })).stdout;

  it('is of this build alone', () => {
    const [build = '', ...others] = readdirSync(join(dist, 'compiled'));
    expect([others, readdirSync(join(dist, 'compiled', build))]).toEqual([
      [],
      expect.arrayContaining(['main.cjs.bin']),
    ]);
  });

  it('is of what a status, a join, the help and a control plane load', () => {
    const [build = ''] = readdirSync(join(dist, 'compiled'));
    const compiled = readdirSync(join(dist, 'compiled', build)).map((file) => file.replace(/-[\w-]{8}\.cjs\.bin$/, ''));
    const parts = [
      'status',
      'status-up',
      'join',
      'connection',
      'peer-service',
      'parse-command-line',
      'commands',
      'serve',
    ];
    expect(compiled).toEqual(expect.arrayContaining(parts));
  });

  it('is taken by V8 with the flags of a control plane', async () => {
    const watcher = join(folder, 'scripts.cjs');
    const log = join(folder, 'taken');
    writeFileSync(
      watcher,
      `const fs = require('node:fs'), vm = require('node:vm');
      vm.Script = class extends vm.Script {
        constructor(code, options) {
          super(code, options);
          if (this.cachedDataRejected === false) fs.appendFileSync(${JSON.stringify(log)}, options.filename + '|');
        }
      };`,
    );
    const env = { NODE_OPTIONS: `--require=${watcher}` };
    // It ends at once: its folder is a file.
    const serve = [join(dist, 'cpn.js'), 'control-plane', 'serve', '--data', watcher];
    expect((await run(serve, { env, allowFailure: true })).stderr).toContain('cannot be used as a data folder');
    const taken = readFileSync(log, 'utf8')
      .split('|')
      .map((path) => basename(path).replace(/-[\w-]{8}\.cjs$/, ''));
    expect(taken).toEqual(expect.arrayContaining(['main.cjs', 'serve']));
  });

  it('is not needed, and not used where it is damaged', async () => {
    const copy = join(folder, 'copy');
    cpSync(dist, copy, { recursive: true });
    const expected = await show(dist);
    const [build = ''] = readdirSync(join(copy, 'compiled'));
    for (const file of readdirSync(join(copy, 'compiled', build)))
      truncateSync(join(copy, 'compiled', build, file), 999);
    expect(await show(copy)).toBe(expected);
    rmSync(join(copy, 'compiled'), { recursive: true });
    expect(await show(copy)).toBe(expected);
    expect(readdirSync(copy)).not.toContain('compiled');
  });

  it('is read from the folder of the program, and nowhere else', async () => {
    const watcher = join(folder, 'watcher.cjs');
    const log = join(folder, 'read');
    writeFileSync(
      watcher,
      `const fs = require('node:fs'), read = fs.readFileSync;
      fs.readFileSync = (path, ...rest) => {
        if (String(path).endsWith('.bin')) fs.appendFileSync(${JSON.stringify(log)}, path + '|');
        return read(path, ...rest);
      };`,
    );
    const elsewhere = { HOME: folder, TMPDIR: folder, XDG_CACHE_HOME: folder, NODE_COMPILE_CACHE: folder };
    await show(dist, { ...elsewhere, NODE_OPTIONS: `--require=${watcher}` });
    const paths = readFileSync(log, 'utf8').split('|').slice(0, -1);
    expect(paths.filter((path) => !path.startsWith(join(dist, 'compiled/')))).toEqual([]);
    expect(paths.length).toBeGreaterThan(1);
  });
});
