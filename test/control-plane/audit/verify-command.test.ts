import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, test, vi } from 'vitest';
import { audit } from '../../../src/cli/commands/audit.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { openAuditLog } from '../../../src/control-plane/audit/audit-log.ts';
import { captureOutput } from '../../cli/commands/run-command.ts';
import { eventually } from '../../lab/eventually.ts';
import { memory } from '../../lab/memory.ts';
import { logIn, makeNetwork, type Plane, startPlane, withDatabase } from '../harness.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(memory, 'verify-'));
});
afterEach(() => vi.restoreAllMocks());

/** Runs `cpn audit` as an administrator of the control plane. */
async function run({ url }: Plane, token: string, given: object) {
  const written = captureOutput();
  const environment = { CPN_API_TOKEN: token, NO_COLOR: '1', XDG_CONFIG_HOME: '/nonexistent' };
  try {
    const exitCode = await audit.run(new Input({ api: url, ...given }, audit.flags, environment));
    return { ...written, exitCode };
  } finally {
    vi.restoreAllMocks();
  }
}

/** A control plane with two networks, whose audit is in a file too, up to its last entry. */
async function start() {
  const path = join(folder, `${crypto.randomUUID()}.log`);
  const plane = await startPlane({ chainMs: 50, auditLog: await openAuditLog(path, '--audit-log') });
  const token = await logIn(plane);
  for (const name of ['one', 'two']) await makeNetwork(plane, token, { name });
  await eventually('the log has both', async () => readFileSync(path, 'utf8').includes('"two"'));
  return { plane, token, path };
}

test('an unchanged log is verified, and compared with the file of --audit-log', async () => {
  const { plane, token, path } = await start();
  const { stdout, exitCode } = await run(plane, token, { verify: true });
  expect([stdout, exitCode]).toEqual(['unchanged: 4 entries, links 1 to 4\n', 0]);
  const compared = await run(plane, token, { verify: true, against: path });
  expect([compared.exitCode, compared.stderr]).toEqual([
    0,
    expect.stringMatching(/equal to the exported file: [2-4] entries/),
  ]);
  const { stdout: json } = await run(plane, token, { verify: true, against: path, json: true });
  expect(JSON.parse(json)).toMatchObject({ ok: true, verified: 4, misfit: null });
});

test('a log is compared with the document of --json, and with lines of syslog', async () => {
  const { plane, token, path } = await start();
  const { stdout } = await run(plane, token, { json: true });
  const [document, syslog] = [join(folder, 'audit.json'), join(folder, 'syslog')];
  writeFileSync(document, stdout);
  writeFileSync(syslog, readFileSync(path, 'utf8').replaceAll(/^/gm, 'Jan  1 00:00:00 cp cpn-control-plane[7]: '));
  for (const against of [document, syslog]) {
    const { stderr, exitCode } = await run(plane, token, { verify: true, against });
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('equal to the exported file')]);
  }
});

test('the first entry that was changed is named, and the exit code is 1', async () => {
  const { plane, token } = await start();
  await withDatabase(plane.dataDir, (db) =>
    db.updateTable('audit_entries').set({ actor_name: 'eve\u001b[31m' }).where('chain_seq', '=', 2).execute(),
  );
  const { stdout, exitCode } = await run(plane, token, { verify: true });
  expect([stdout, exitCode]).toEqual(['changed: link 2, entry 2: it was changed\n', 1]);
});

test('a log that was written again fits itself, but not the file', async () => {
  const { plane, token, path } = await start();
  await withDatabase(plane.dataDir, async (db) => {
    await db.updateTable('audit_entries').set({ actor_name: 'eve', chain_seq: null, chain_hash: null }).execute();
    await db.deleteFrom('audit_chains').execute();
  });
  const isChained = async () => (await run(plane, token, { verify: true })).stdout.includes('4 entries');
  await eventually('it is chained again', isChained);
  const { stdout, exitCode } = await run(plane, token, { verify: true, against: path });
  expect([exitCode, stdout]).toEqual([
    1,
    expect.stringMatching(/^changed: link \d, entry \d: it or an earlier entry differs from the exported entry \d\n$/),
  ]);
});

test.each([
  [{ against: '/nonexistent' }, '--against is for --verify; give --verify too'],
  [{ verify: true, limit: '3' }, '--verify reads the whole log; leave out --limit'],
  [
    { verify: true, against: '/nonexistent' },
    '--against "/nonexistent" cannot be read (ENOENT); check the path and its permissions',
  ],
])('%o is refused', async (given, message) => {
  await expect(run({ url: 'http://127.0.0.1:9' } as Plane, 'token', given)).rejects.toThrow(message);
});

test('a file without entries is refused', async () => {
  const path = join(folder, 'other');
  writeFileSync(path, 'hello\n{"a": 1}\n');
  await expect(run({ url: 'http://127.0.0.1:9' } as Plane, 'token', { verify: true, against: path })).rejects.toThrow(
    /has no chained entry in its 2 lines/,
  );
});

test('characters that end lines elsewhere, in a name, hide no line of the copy', async () => {
  const { plane, token, path } = await start();
  await makeNetwork(plane, token, { name: 'x\u2028{\u2028y' });
  await makeNetwork(plane, token, { name: 'last' });
  await eventually('the log has it', async () => readFileSync(path, 'utf8').includes('"last"'));
  const { stderr } = await run(plane, token, { verify: true, against: path, json: true });
  expect(stderr).toBe('');
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n').length;
  const { stdout } = await run(plane, token, { verify: true, against: path, json: true });
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, compared: lines, unread: null });
});

test('lines that are no entry are counted, and documents may follow each other', async () => {
  const { plane, token, path } = await start();
  const { stdout: document } = await run(plane, token, { json: true });
  const both = join(folder, 'both');
  const deep = `{"data":${'['.repeat(20_000)}`;
  writeFileSync(both, `${document}${document}cut {"type":\n${deep}\n${readFileSync(path, 'utf8')}`);
  const { stderr, exitCode } = await run(plane, token, { verify: true, against: both });
  expect([exitCode, stderr]).toEqual([
    0,
    expect.stringContaining('--against has 2 lines that are no entry, the first at line'),
  ]);
});
