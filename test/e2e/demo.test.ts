import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeJoinCommands } from '../../src/console/logic/peers/join-commands.ts';
import { Health } from '../../src/contract/health.ts';
import { eventually } from '../lab/eventually.ts';
import { Process } from '../lab/process.ts';
import { run } from '../lab/run.ts';

const scripts = join(import.meta.dirname, '../../scripts');
const demo = join(scripts, 'demo.ts');

describe('scripts/demo', () => {
  it('shows every pair and the LAN answering, each status, and leaves', async () => {
    const { stdout } = await run([process.execPath, demo], { timeoutMs: 55_000 });
    expect(stdout.match(/→ .*: answered/g)).toHaveLength(8);
    expect(stdout).not.toContain('lost');
    for (const host of ['connector', 'origin', 'laptop']) expect(stdout).toContain(`cpn status on ${host}`);
    expect(stdout.match(/removed everything cpn created for it/g)).toHaveLength(3);
    expect(stdout).toContain('Every ping was answered.');
  });

  it('names in one line what it needs where it cannot run', async () => {
    const hideWg = 'mount --bind /dev/null "$(command -v wg)" && exec "$@"';
    const argv = ['unshare', '--mount', 'sh', '-c', hideWg, 'sh', process.execPath, demo];
    const { exitCode, stderr } = await run(argv, { allowFailure: true });
    expect([exitCode, stderr]).toEqual([1, 'scripts/demo needs the commands wg: run scripts/setup\n']);
  });

  it('--keep serves its console until SIGINT, and leaves nothing', async () => {
    const kept = new Process([process.execPath, demo, '--keep']);
    try {
      const [, url = ''] = await kept.waitForLine(/^console +(http:\/\/127\.0\.0\.1:\d+)\/$/, 120_000);
      const [, email] = await kept.waitForLine(/^user +(\S+)$/);
      const [, password] = await kept.waitForLine(/^password +(\S+)$/);
      const [, on = ''] = await kept.waitForLine(/^ +(\S+) edge-1 cpn drain$/);
      const [, hostUrl = ''] = await kept.waitForLine(/^ +(http:\S+)$/);
      await kept.waitForLine(/^ +\S+ web-3 sh$/);
      await kept.waitForLine(/until Ctrl-C/);
      const page = await fetch(url, { headers: { accept: 'text/html' } });
      expect(await page.text()).toContain('<title>');
      const login = await fetch(`${url}/api/auth/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email, password }),
      });
      const { access_token: token } = JSON.parse(await login.text()).data;
      const health = await eventually('pairs with a path', async () => {
        const reply = await fetch(`${url}/api/networks/1/health`, { headers: { authorization: `Bearer ${token}` } });
        const { peers } = Health.parse(JSON.parse(await reply.text()).data);
        return peers.every((peer) => peer.paths.some(({ path }) => path === 'direct')) && peers;
      });
      expect(health).toHaveLength(8);
      expect((await run([on, 'anna', 'cpn', 'status'])).stdout).toContain('192.168.50.0/24  edge-1  active');
      await eventually('a direct path between two laptops behind NAT', async () =>
        /path +direct for/.test((await run([on, 'anna', 'cpn', 'explain', 'ben'])).stdout),
      );

      const made = await fetch(`${url}/api/networks/1/enrollment-keys`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify({ name: 'web-3', max_uses: 1, expires_in_hours: 1, peer_types: ['origin'] }),
      });
      const key = JSON.parse(await made.text()).data.enrollment_token;
      const [{ text: command } = { text: '' }] = makeJoinCommands({ api: hostUrl, token: key, type: 'origin' });
      const line = `'${on}' web-3 sh -ec '${command}'`;
      const shell = new Process(['script', '-qec', line, '/dev/null'], { holdInput: true });
      await shell.waitForLine(/Enrolment key/);
      shell.writeInput(`${key}\r`);
      expect(await shell.endWithin(60_000)).toMatchObject({ exitCode: 0 });
      expect((await run([on, 'web-3', 'cpn', 'status'])).stdout).toContain('network office (1)');

      kept.signal('SIGINT');
      expect(await kept.endWithin(20_000)).toMatchObject({ exitCode: 0, stderr: '' });
      const folder = dirname(on);
      await expect(readdir(folder)).rejects.toThrow('ENOENT');
      expect(await findProcesses(folder)).toEqual([]);
      await expect(fetch(url)).rejects.toThrow();
    } finally {
      kept.signal('SIGKILL');
    }
  });

  it('--keep leaves nothing where its terminal is closed', async () => {
    const kept = new Process([process.execPath, '--input-type=module', '-e', keepOneHost]);
    try {
      const [, folder = ''] = await kept.waitForLine(/^ +(\S+)\/on edge-1 cpn drain$/);
      await kept.waitForLine(/until Ctrl-C/);
      expect(await findProcesses(folder)).not.toEqual([]);
      kept.signal('SIGHUP');
      expect(await kept.endWithin(20_000)).toMatchObject({ exitCode: 0, stderr: '' });
      await expect(readdir(folder)).rejects.toThrow('ENOENT');
      expect(await findProcesses(folder)).toEqual([]);
    } finally {
      kept.signal('SIGKILL');
    }
  });
});

/** The demo with a single host in place of its network, whose start takes most of the time. */
const keepOneHost = `
import { keepDemo } from '${join(scripts, 'keep-demo.ts')}';
import { Lab } from '${join(scripts, '../test/lab/lab.ts')}';
setInterval(() => {}, 1000);
await keepDemo(console.log, async (say, use) => {
  await using lab = await Lab.start();
  await lab.addHost('host', { address: '203.0.113.1/24' });
  await use({ lab, url: '', hostUrl: '', email: '', password: '', on: lab.folder + '/on' });
});
process.exit();
`;

/** The processes that have this text in their environment. */
async function findProcesses(text: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const environments = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')));
  return pids.filter((_, at) => environments[at]?.includes(text));
}
