/** Names and messages with control characters: no terminal receives them, and scripts receive them whole. */
import { readFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Office, startOffice } from '../e2e/office.ts';
import { keyFlags } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import type { Outcome } from '../lab/process.ts';

/** A title, a cleared screen, a C1 sequence, overrides of the writing direction, line separators, an invisible tag, fillers. */
const evil =
  'nasty\u001b]0;owned\u0007\u001b[2J\u009b31m\u0085\u202e\u2066\u200f\u2028\u2029\u200b\ufeff\u{e0041}\u3164\u2800\u{e0100}\r\bname';

/** All that {@link evil} has of it, but for the line feeds that every text has. */
const unshapely = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]/u;

let office: Office;
let host: Host;
let admin: Host;
let members = 0;

beforeAll(async () => {
  office = await startOffice();
  admin = office.controlPlane.host;
  host = await office.lab.addHost('member', { address: '203.0.113.11/24' });
  const connector = await office.lab.addHost('connector', { address: '203.0.113.12/24' });
  // The login may be older than five minutes.
  const password = await readFile(path(admin.homeDir, 'password'), 'utf8');
  for (const [method, target, ...fields] of [
    ['PATCH', '/api/networks/1', `name=${evil}`, `description=${evil}`],
    [
      'POST',
      '/api/users',
      `email=ada@example.net`,
      'role=viewer',
      'password=long-enough-for-this',
      `current_password=${password}`,
    ],
    ['POST', '/api/auth/tokens', `name=${evil}`, `password=${password}`],
    ['POST', '/api/networks/1/enrollment-keys', `name=${evil}`],
  ]) {
    const flags = fields.flatMap((field) => ['--raw-field', field]);
    await admin.cpn(['api', method ?? '', target ?? '', ...flags]);
  }
  await enrol(connector, '--type', 'connector', '--endpoint', '203.0.113.12:51820');
}, 90_000);

afterAll(() => office?.lab.stop());

/** No two peers of a network have the same name. */
async function enrol(joining: Host, ...flags: string[]): Promise<Outcome> {
  members += 1;
  const key = (await admin.cpn(['key', 'create', '1', '--name', `key ${members}`, ...keyFlags(flags)])).stdout;
  const argv = ['join', '-', ...office.api, '--wait', '0', '--name', `${evil}${members}`, ...flags];
  return joining.cpn(argv, { input: key });
}

function expectShapely({ stdout, stderr }: Outcome, what: string): void {
  for (const [stream, text] of Object.entries({ stdout, stderr })) {
    expect({ what, stream, text: text.replaceAll('\n', '') }).toEqual({
      what,
      stream,
      text: expect.not.stringMatching(unshapely),
    });
  }
}

/** Runs a command as text, and with --json where it has that, which has the name as it is. */
async function look(on: Host, args: readonly string[], { json = true, fails = false } = {}): Promise<string> {
  const what = args.join(' ');
  const seen = await on.cpn(args, { allowFailure: true });
  expect({ what, failed: seen.exitCode !== 0 }).toEqual({ what, failed: fails });
  expectShapely(seen, what);
  if (json) {
    const scripted = await on.cpn([...args, '--json'], { allowFailure: true });
    expectShapely(scripted, `${what} --json`);
    expect(texts(JSON.parse(scripted.stdout)).some((text) => text.includes(evil))).toBe(true);
  }
  return `${seen.stdout}${seen.stderr}`;
}

/** Every text in a document, at any depth. */
function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : [];
}

test('are not printed by the commands of a host', async () => {
  const joining = await enrol(host);
  expect(joining.stdout).toContain('joined nasty');
  expectShapely(joining, 'join');
  expect(await look(host, ['status'])).toContain('nasty');
  expect(await look(host, ['explain', '192.168.50.9'], { fails: true })).toContain('nasty');
  await look(host, ['plan'], { json: false });
  await look(host, ['reconcile'], { json: false });
  expect(
    await look(host, ['wait', '--for', 'route', '10.99.0.0/24', '--timeout', '0'], { json: false, fails: true }),
  ).toContain('not ready');
  expect(await look(host, ['status', evil], { json: false })).toContain('nasty');
  expect(await look(host, ['status', `no ${evil}`], { json: false, fails: true })).toContain('nasty');
});

test('are not printed on a terminal, nor by status --watch', async () => {
  const program = path(import.meta.dirname, '../../dist/cpn.js');
  const command = `stty rows 50 cols 250; exec '${program}' status`;
  const { stdout } = await host.exec(['script', '-qefc', command, '/dev/null'], {
    env: { SHELL: '/bin/sh', TERM: 'xterm' },
  });
  expect(stdout).toContain('\u001b[1mcpn0');
  const styling = new RegExp(`${String.fromCharCode(27)}\\[\\d{1,2}m`, 'g');
  expectShapely(
    { stdout: stdout.replaceAll(styling, '').replaceAll('\r\n', ''), stderr: '', exitCode: 0, signal: null },
    'terminal',
  );
  const watching = await host.spawnCpn(['status', '--watch']);
  await watching.waitForLine(/nasty.*connector/, 20_000);
  expectShapely(await watching.stop(), 'status --watch');
});

test('are not printed by the commands of an administrator', async () => {
  for (const args of [
    ['network', 'list'],
    ['network', 'show', '1'],
    ['peer', 'list', '1'],
    ['key', 'list', '1'],
    ['token', 'list'],
    ['audit'],
  ]) {
    expect(await look(admin, args)).toContain('nasty');
  }
  expect(await look(admin, ['network', 'update', '1', '--description', evil])).toContain('nasty');
  expect(await look(admin, ['network', 'show', 'nowhere'], { json: false, fails: true })).toContain('nasty');
  expect(await look(admin, ['key', 'revoke', '1', evil, '--yes'], { json: false })).toContain('nasty');
});

test('are not printed when a service answers with them', async () => {
  const service = `require('http').createServer((_, reply) => {
    reply.writeHead(422, { 'content-type': 'application/json' });
    reply.end(JSON.stringify({ message: ${JSON.stringify(evil)}, errors: { name: [${JSON.stringify(evil)}] } }));
  }).listen(8080, '127.0.0.1', () => console.log('listening'))`;
  const server = host.spawn(['node', '-e', service]);
  await server.waitForLine(/listening/);
  const env = { CPN_API_TOKEN: 'cpt_none', CPN_API: 'http://127.0.0.1:8080' };
  const refused = await host.cpn(['network', 'list'], { env, allowFailure: true });
  expect(refused).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('nasty') });
  expectShapely(refused, 'network list');
  await server.stop();
});

test('are not printed when the host leaves', async () => {
  await look(host, ['drain'], { json: false, fails: true });
  await look(host, ['leave', '--yes', '--verify'], { json: false });
});
