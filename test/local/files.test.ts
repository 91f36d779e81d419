/** Files and folders that a local user changed, and the messages about them. */
import { chmod, chown, lstat, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { join, type Office, plan, startOffice } from '../e2e/office.ts';
import { builtProgram } from '../lab/built-program.ts';
import { makeKey } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';

let office: Office;
let host: Host;
let target: string;

beforeAll(async () => {
  office = await startOffice();
  host = await office.lab.addHost('host', { address: '203.0.113.11/24' });
  target = path(host.folder, 'target');
  await writeFile(target, 'precious\n', { mode: 0o644 });
}, 60_000);

afterAll(() => office?.lab.stop());

const statePath = (link = 'cpn0') => path(host.stateDir, `${link}.json`);
const modeOf = async (file: string) => ((await lstat(file)).mode & 0o7777).toString(8);
const newKey = (name: string, ...flags: string[]) => makeKey(office.controlPlane, 'office', name, ...flags);

/** Runs a command that must fail, and returns its exit code and what it prints. */
async function fail(args: readonly string[]) {
  const { exitCode, stdout, stderr } = await host.cpn(args, { allowFailure: true });
  return { exitCode, shown: stdout, said: stderr.trim() };
}

test.each(['000', '077'])('a join with umask %s makes files and folders for root alone', async (umask) => {
  const script = `umask ${umask}; exec "$0" "$@"`;
  const connector = ['--type', 'connector'];
  const joining = ['join', '-', ...office.api, ...connector, '--wait', '0'];
  const argv = ['sh', '-c', script, await builtProgram(), ...joining];
  await host.exec(argv, { input: await newKey(`umask ${umask}`, ...connector), timeoutMs: 30_000 });
  const places = [host.stateDir, host.runtimeDir, host.configDir];
  const found = await host.exec(['find', ...places, '-perm', '/077']);
  expect(found.stdout).toBe('');
  for (const file of [...places, statePath(), path(host.configDir, 'cpn0.conf'), path(host.runtimeDir, 'lock')]) {
    expect([file, (await modeOf(file)).slice(1)]).toEqual([file, '00']);
  }
  await host.cpn(['leave', '--yes', '--verify']);
});

describe('a network that was joined', () => {
  beforeAll(async () => {
    await join(office, host);
  }, 60_000);

  test('is repaired, with a warning, where its files and folders were opened to others', async () => {
    await chmod(host.stateDir, 0o777);
    for (const file of [statePath(), path(host.configDir, 'cpn0.conf')]) await chmod(file, 0o644);
    const { stderr } = await host.cpn(['reconcile']);
    expect(stderr).toContain(`warning: others could write in ${host.stateDir} (mode 0777); cpn has closed it`);
    expect(stderr).toContain(`warning: others could read ${statePath()} (mode 0644)`);
    expect(stderr).toContain(`warning: others could read ${path(host.configDir, 'cpn0.conf')} (mode 0644)`);
    expect(await modeOf(statePath())).toBe('600');
    expect((await host.cpn(['reconcile'])).stderr).not.toContain('warning');
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
  });

  test('is left alone, and the path named, where its state is a link, a pipe, or writable for others', async () => {
    const text = await readFile(statePath(), 'utf8');
    const spoil: [RegExp, () => Promise<unknown>][] = [
      [/is a symbolic link, which is not followed/, () => symlink(target, statePath())],
      [/is not a regular file/, () => host.exec(['mkfifo', statePath()])],
      [
        /can be written by others \(mode 0666\)/,
        () => writeFile(statePath(), text).then(() => chmod(statePath(), 0o666)),
      ],
    ];
    for (const [problem, put] of spoil) {
      await rm(statePath());
      await put();
      for (const command of ['status', 'reconcile', 'leave']) {
        const { exitCode, shown, said } = await fail([command]);
        expect([command, exitCode]).toEqual([command, 1]);
        expect(shown).toMatch(command === 'status' ? /^cpn0 {2}degraded\nreason .*\n$/ : /^$/);
        expect(said).toContain(`cpn: ${statePath()}`);
        expect(said).toMatch(problem);
      }
      expect((await host.exec(['wg', 'show', 'cpn0', 'public-key'])).stdout).not.toBe('');
    }
    await chmod(statePath(), 0o600);
    expect([await readFile(target, 'utf8'), await modeOf(target)]).toEqual(['precious\n', '644']);
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
  });

  test('has its wg-quick file repaired where it was replaced by a link', async () => {
    const file = path(host.configDir, 'cpn0.conf');
    await rm(file);
    await symlink(target, file);
    await host.cpn(['reconcile']);
    expect((await lstat(file)).isFile()).toBe(true);
    expect(await readFile(target, 'utf8')).toBe('precious\n');
  });

  test('is not changed where the folder of the lock is a link into nowhere, or a loop', async () => {
    for (const target of [path(host.folder, 'nowhere'), host.runtimeDir]) {
      await rm(host.runtimeDir, { recursive: true, force: true });
      await symlink(target, host.runtimeDir);
      const { exitCode, said } = await fail(['down']);
      expect(exitCode).toBe(1);
      expect(said).toContain(host.runtimeDir);
      await expect(stat(path(host.folder, 'nowhere'))).rejects.toThrow('ENOENT');
      await rm(host.runtimeDir);
    }
  });

  /** Only root can give something away. */
  test.runIf(process.geteuid?.() === 0)(
    'is not changed where another user made the folder of the lock before',
    async () => {
      await rm(host.runtimeDir, { recursive: true, force: true });
      await mkdir(host.runtimeDir);
      await chown(host.runtimeDir, 4242, 4242);
      const { exitCode, said } = await fail(['down']);
      expect(exitCode).toBe(2);
      expect(said).toContain(`the folder of user 4242 "${host.runtimeDir}" exists and was not made by cpn`);
      await rm(host.runtimeDir, { recursive: true });
      await host.cpn(['leave', '--yes', '--verify']);
    },
  );
});

describe('a file with a secret', () => {
  const asked = () => ['join', ...office.api, '--wait', '0'];

  test('is used with a warning where every user can read it, and without one where a group can', async () => {
    const file = path(host.folder, 'key');
    for (const [mode, warned] of [
      [0o644, true],
      [0o640, false],
    ] as const) {
      await writeFile(file, await newKey(`mode ${mode}`));
      await chmod(file, mode);
      const { stderr } = await host.cpn([...asked(), `file:${file}`]);
      expect(stderr.includes(`other users can read or write ${file} (mode 0644)`)).toBe(warned);
      await host.cpn(['leave', '--yes']);
    }
  });

  test('may be a pipe, and is no endless device', async () => {
    const pipe = path(host.folder, 'pipe');
    await host.exec(['mkfifo', '-m', '600', pipe]);
    const writer = host.spawn(['sh', '-c', 'cat >"$0"', pipe], { input: await newKey('pipe') });
    await host.cpn([...asked(), `file:${pipe}`]);
    await writer.exited;
    const { exitCode, said } = await fail([...asked(), 'file:/dev/zero']);
    expect([exitCode, said]).toEqual([2, 'cpn: the enrolment key is longer than 64 KiB']);
    await host.cpn(['leave', '--yes']);
  });
});
