/** The password in a PostgreSQL URL, and what the control plane keeps there. */
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  asSuperuser,
  findPrograms,
  type PostgresServer,
  startPostgres,
  urlOf,
} from '../control-plane/postgres-server.ts';
import { AdminShell } from '../e2e/admin-shell.ts';
import { Canaries } from './canaries.ts';

let postgres: PostgresServer;
let shell: AdminShell;
const canaries = new Canaries();
const said: string[] = [];
const trace = { CPN_LOG_LEVEL: 'trace' };

beforeAll(async () => {
  postgres = await startPostgres();
  shell = await AdminShell.open();
  canaries.addText('database password', postgres.password);
}, 60_000);

afterAll(async () => {
  await postgres?.remove();
  await shell?.close();
});

/** Starts a server that must fail, and keeps its output. */
async function failServing(url: string): Promise<void> {
  const flags = [
    'control-plane',
    'serve',
    '--listen',
    '127.0.0.1:0',
    '--database',
    `file:${await shell.write('url', url)}`,
  ];
  const { exitCode, stdout, stderr } = await shell.cpn(flags, { env: trace });
  expect(exitCode).not.toBe(0);
  said.push(stdout, stderr);
}

test('no output, argument or dump has either, whatever fails', async () => {
  const { port, user, password } = postgres;
  const at = (database: string, secret = password) => `postgres://${user}:${secret}@127.0.0.1:${port}/${database}`;
  await failServing(at('nowhere'));
  await failServing(`${at('postgres')}?sslmode=maybe`);
  await failServing(at('postgres').replace('postgres:', 'mysql:'));
  canaries.addText('wrong password', `${password}x`);
  await failServing(at('postgres', `${password}x`));

  const ownerPassword = 'correct-horse-battery-staple';
  canaries.addText('owner password', ownerPassword);
  const owner = [
    '--owner-email',
    'owner@example.net',
    '--owner-password-file',
    await shell.write('owner', ownerPassword),
  ];
  const flags = ['--listen', '127.0.0.1:0', '--database', `file:${await shell.write('url', at('postgres'))}`, ...owner];
  const server = shell.spawn(['control-plane', 'serve', ...flags], { env: trace });
  const [, url = ''] = await server.waitForLine(/control plane listening on (http:\S+)/, 30_000);
  for (const file of ['cmdline', 'environ']) said.push(await readFile(`/proc/${server.pid}/${file}`, 'utf8'));
  await shell.output([
    'login',
    '--api',
    url,
    '--email',
    'owner@example.net',
    '--password-file',
    join(shell.folder, 'owner'),
  ]);
  const login = JSON.parse(await readFile(join(shell.folder, 'config', 'cpn', 'login.json'), 'utf8'));
  canaries.addText('session', login.token);
  await shell.output(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24']);
  canaries.addText('enrolment key', (await shell.output(['key', 'create', 'office', '--name', 'one'])).trim());
  canaries.addText('personal token', (await shell.output(['token', 'create', '--name', 'ci'])).trim());
  said.push(await shell.output(['audit', '--json']));
  await postgres.crash();
  said.push((await shell.cpn(['api', 'GET', '/api/networks', '--timeout', '2'], { env: trace })).stderr);
  await postgres.restart();

  const dump = spawnSync(join(findPrograms(), 'pg_dump'), [urlOf(postgres, 'postgres')], { encoding: 'utf8' });
  expect([dump.status, dump.stderr]).toEqual([0, '']);
  expect(dump.stdout).toContain('owner@example.net');
  expect(canaries.find(dump.stdout)).toEqual([]);
  const activity = await asSuperuser(postgres, (client) => client.query('SELECT query FROM pg_stat_activity'));
  expect(canaries.find(JSON.stringify(activity.rows))).toEqual([]);

  const { stdout, stderr } = await server.stop();
  said.push(stdout, stderr);
  expect(stderr).toContain('"level":');
  for (const text of said) expect([text, canaries.find(text)]).toEqual([text, []]);
}, 90_000);
