import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { call, closePlane, makeNetwork, openPlane, type Plane } from '../../control-plane/harness.ts';
import { program } from '../commands/served-process.ts';

let plane: Plane;
let token: string;

beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('owner');
  await makeNetwork(plane, token, { name: 'office', private_cidr: '10.77.0.0/24' });
  return () => closePlane(plane);
});

/** Runs the program with its stdout on a full device, or on a pipe that has no reader. */
async function runInto(place: '/dev/full' | 'closed pipe', argv: readonly string[]) {
  const file = place === 'closed pipe' ? null : openSync(place, 'w');
  const child = spawn(process.execPath, [program, ...argv], {
    stdio: ['ignore', file ?? 'pipe', 'pipe'],
    env: { ...process.env, CPN_API_URL: plane.url, CPN_API_TOKEN: token, XDG_CONFIG_HOME: '/nowhere' },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  if (file !== null) closeSync(file);
  child.stdout?.destroy();
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  await once(child, 'close');
  return { code: child.exitCode, said };
}

const full =
  'cpn: cannot write standard output: no space left on device (ENOSPC); free some space\nthe command succeeded; only its output is lost\n';

test.each([
  [['network', 'list']],
  [['network', 'list', '--json']],
  [['api', 'GET', '/api/networks']],
  [['completion', 'bash']],
  [['join', '--help']],
])('%j: output that a full device does not take is a failure', async (argv) => {
  expect(await runInto('/dev/full', argv)).toEqual({ code: 1, said: full });
});

test('the version alone is no exception', async () => {
  expect(await runInto('/dev/full', ['--version'])).toEqual({
    code: 1,
    said: 'cpn: cannot write standard output (ENOSPC)\n',
  });
});

test.each([[['network', 'list']], [['completion', 'bash']], [['--version']]])(
  '%j: a reader that went away is no failure',
  async (argv) => {
    expect(await runInto('closed pipe', argv)).toEqual({ code: 0, said: '' });
  },
);

test('a disk that takes a part of a text has not taken it', async () => {
  const small = 'mount -t tmpfs -o size=4k none /mnt && exec "$@" >/mnt/text';
  const argv = ['--mount', 'sh', '-c', small, 'sh', process.execPath, program, 'completion', 'bash'];
  const child = spawn('unshare', argv, { stdio: ['ignore', 'ignore', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  await once(child, 'close');
  expect([child.exitCode, said]).toEqual([1, full]);
});

test('a bundle that the disk does not take leaves no file behind', async () => {
  const small =
    'mount -t tmpfs -o size=4k none /mnt && head -c 4096 /dev/zero >/mnt/rest && "$@"; code=$?; ls /mnt; exit $code';
  const bundle = [process.execPath, program, 'debug', 'bundle', '/mnt/bundle.tar.gz'];
  const child = spawn('unshare', ['--mount', 'sh', '-c', small, 'sh', ...bundle], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [listed, said] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  expect([child.exitCode, listed]).toEqual([1, 'rest\n']);
  expect(said).toContain('cannot write /mnt/bundle.tar.gz: no space left on device (ENOSPC)');
});

describe.each(['/dev/full', 'closed pipe'] as const)('a secret that is shown once, on %s', (place) => {
  const why = place === '/dev/full' ? 'ENOSPC' : 'EPIPE';
  const list = async (path: string) => (await call(plane.url, 'GET', path, { token })).body.data as { name: string }[];

  test.each([[[]], [['--json']]])('is revoked where it is a key: %j', async (flags) => {
    const { code, said } = await runInto(place, ['key', 'create', 'office', '--name', 'edge', ...flags]);
    expect(code).toBe(1);
    expect(said).toMatch(/the key edge \(\d+\) was revoked because its value was lost; create another/);
    expect(said).toContain(why);
    expect(await list('/api/networks/1/enrollment-keys')).toEqual([]);
  });

  test('is revoked where it is a token', async () => {
    const { code, said } = await runInto(place, ['token', 'create', '--name', 'ci']);
    expect(code).toBe(1);
    expect(said).toMatch(/the token ci \(\d+\) was revoked because its value was lost; create another/);
    expect((await list('/api/auth/tokens')).filter(({ name }) => name === 'ci')).toEqual([]);
  });

  test('is said to be lost where a reply holds it', async () => {
    const { code, said } = await runInto(place, ['api', 'POST', '/api/auth/tokens', '--field', 'name=api']);
    expect([code, said]).toEqual([1, expect.stringContaining(`cannot write standard output: `)]);
    expect(said).toContain(why);
  });
});

test.each([
  [
    '022',
    'warning: other users can read the file to which the key web-1 (KEY) is written (mode 0644); run: chmod 600 FILE',
  ],
  ['077', ''],
])('a secret in a file of umask %s', async (mask, expected) => {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-secret-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const script = `umask ${mask}; exec "$@" >${folder}/key`;
  const argv = ['-c', script, 'sh', process.execPath, program, 'key', 'create', 'office', '--name', 'web-1'];
  const env = { ...process.env, CPN_API_URL: plane.url, CPN_API_TOKEN: token, XDG_CONFIG_HOME: '/nowhere' };
  const child = spawn('sh', argv, { stdio: ['ignore', 'ignore', 'pipe'], env });
  const [said] = await Promise.all([text(child.stderr), once(child, 'close')]);
  expect(child.exitCode).toBe(0);
  const warnings = said.split('\n').filter((line) => line.startsWith('warning:'));
  expect(warnings.join('\n').replace(/\(\d+\)/, '(KEY)')).toBe(expected);
});
