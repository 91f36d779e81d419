import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it, test } from 'vitest';
import { REPOSITORY } from '../lab/built-program.ts';
import { run } from '../lab/run.ts';

const scripts = join(REPOSITORY, 'scripts');
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-setup-'));
  mkdirSync(join(folder, 'bin'));
  for (const tool of ['apt-get', 'npm']) {
    const script = `#!/bin/sh\necho "${tool} with $PATH" >>'${folder}/installed'\n`;
    writeFileSync(join(folder, 'bin', tool), script, { mode: 0o755 });
  }
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Which of apt-get and npm were called, and with which PATH. */
function installed(): string {
  const file = join(folder, 'installed');
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** Runs scripts/setup on a machine that lacks nearly all tools. */
async function setupBareMachine(args: readonly string[], env: Record<string, string> = {}) {
  for (const tool of ['dirname', 'sort']) symlinkSync(`/usr/bin/${tool}`, join(folder, 'bin', tool));
  const argv = ['/bin/bash', join(scripts, 'setup'), ...args];
  const { exitCode, stderr } = await run(argv, { env: { PATH: join(folder, 'bin'), ...env }, allowFailure: true });
  return { exitCode, stderr };
}

it('lists what is missing of a set, and installs nothing, with CPN_SETUP=check', async () => {
  const { exitCode, stderr } = await setupBareMachine(['rpm'], { CPN_SETUP: 'check' });
  expect([exitCode, installed()]).toEqual([1, '']);
  expect(stderr).toMatch(/^setup: missing: .*\bcpio\b.*\bgit\b.*\brpm\b.*; run scripts\/setup\n$/);
  expect(stderr).not.toMatch(/qemu|lintian|postgresql/);
});

it('refuses a set that there is not', async () => {
  const { exitCode, stderr } = await setupBareMachine(['lab', 'everything']);
  expect([exitCode, stderr, installed()]).toEqual([1, expect.stringContaining('"everything" is not a set'), '']);
});

it("runs npm with the machine's Node, next to which npm finds the machine's settings", async () => {
  const project = join(folder, 'project');
  mkdirSync(join(project, 'scripts'), { recursive: true });
  copyFileSync(join(scripts, 'setup'), join(project, 'scripts/setup'));
  const own = join(project, 'node_modules/.bin');
  const PATH = [own, join(folder, 'bin'), dirname(process.execPath), process.env.PATH].join(':');
  await run(['/bin/bash', join(project, 'scripts/setup'), 'base'], { env: { ...process.env, PATH, CPN_SETUP: '' } });
  expect(installed()).toContain(`npm with ${join(folder, 'bin')}:`);
  expect(installed()).not.toContain(own);
});

it('fetches systemd-resolved of the version of the installed library, and unbound with its libraries, once', async () => {
  const project = join(folder, 'project');
  mkdirSync(join(project, 'scripts'), { recursive: true });
  copyFileSync(join(scripts, 'setup'), join(project, 'scripts/setup'));
  const tools = {
    'apt-get': `echo "apt-get $*" >>'${folder}/installed'; shift; for name; do : >"\${name%%=*}_1.deb"; done`,
    'dpkg-deb': 'echo "adduser, libc6 (>= 2.36), libevent-2.1-7 (>= 2.1.8)"',
    'dpkg-query': 'printf 252.1-1',
    dpkg: `case $2 in
      *systemd*) mkdir -p "$3" && echo program >"$3/resolvectl" ;;
      *) mkdir -p "$3/usr/sbin" && echo program >"$3/usr/sbin/unbound" ;;
    esac`,
  };
  for (const [tool, script] of Object.entries(tools)) {
    writeFileSync(join(folder, 'bin', tool), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }
  const PATH = [join(folder, 'bin'), dirname(process.execPath), process.env.PATH].join(':');
  const argv = ['/bin/bash', join(project, 'scripts/setup'), 'lab'];
  for (let time = 0; time < 2; time++) await run(argv, { env: { ...process.env, PATH, CPN_SETUP: '' } });
  const downloads = installed().match(/^apt-get download .*/gm);
  expect(downloads).toEqual([
    'apt-get download systemd-resolved=252.1-1',
    ...['apt-get download unbound', 'apt-get download libevent-2.1-7'],
  ]);
  expect(readdirSync(join(project, '.cache'))).toEqual(['systemd-resolved', 'unbound']);
  expect(readdirSync(join(project, '.cache/systemd-resolved'))).toEqual(['resolvectl', 'version']);
});

/** Without one it would take the arguments of the script itself. */
test('each script that sources it names a set', () => {
  const sourcing = readdirSync(scripts, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .flatMap(({ name }) => readFileSync(join(scripts, name), 'utf8').match(/^\. scripts\/setup.*/gm) ?? []);
  expect(sourcing.length).toBeGreaterThan(5);
  for (const line of sourcing) expect(line).toMatch(/^\. scripts\/setup (base|lab|vm|all|"\$\{sets\[@\]\}")/);
});
