import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { variables } from '../../packaging/manual/facts.ts';
import { manualPages } from '../../packaging/manual/pages.ts';
import { loadCommands } from '../../src/cli/parse/commands.ts';
import { run } from '../lab/run.ts';

const commands = await loadCommands();

const pages = manualPages(commands, { version: '1.2.3', date: '2025-01-31' });
const environment = { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8', MANWIDTH: '78', MANROFFOPT: '-wmac' };
/** How a printing terminal makes a letter bold: twice in one place. */
const overstruck = new RegExp(`.${String.fromCharCode(8)}`, 'g');
let folder: string;
let files: string[];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-manual-'));
  files = [...pages.keys()].map((name) => join(folder, name));
  for (const [name, text] of pages) writeFileSync(join(folder, name), text);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('there is a page of every command, and of the program', () => {
  const expected = ['cpn', ...commands.map(({ name }) => `cpn-${name.replaceAll(' ', '-')}`)];
  expect([...pages.keys()].sort()).toEqual(expected.map((name) => `${name}.1`).sort());
  for (const { name } of commands)
    expect(pages.get('cpn.1')).toContain(`\\fBcpn\\-${name.replaceAll(/[ -]/g, '\\-')}\\fR(1)`);
});

it('mandoc and groff have no warning', async () => {
  const lint = await run(['mandoc', '-Tlint', '-Wwarning', ...files], { env: environment, allowFailure: true });
  expect(lint.stdout).toBe('');
  const man = ['man', '--warnings', '--local-file', '--pager=cat', ...files];
  expect((await run(man, { env: environment, timeoutMs: 50_000 })).stderr).toBe('');
});

it('a page shows argument, flags, defaults, variables and examples as they are typed', async () => {
  const text = async (name: string) =>
    (await run(['mandoc', '-Tascii', join(folder, name)], { env: environment })).stdout.replaceAll(overstruck, '');
  const join1 = await text('cpn-join.1');
  for (const each of [
    'cpn join [key] [flags]',
    '--listen-port PORT',
    '--masquerade, --no-masquerade',
    'CPN_LISTEN_PORT',
  ]) {
    expect(join1).toContain(each);
  }
  for (const example of commands.find(({ name }) => name === 'join')?.examples ?? []) {
    expect(join1.replaceAll(/\s+/g, ' ')).toContain(example);
  }
  expect(await text('cpn-key-revoke.1')).toContain('cpn key revoke network key [flags]');
});

it('the page of the program names every variable that it reads', () => {
  const sources = readdirSync('src', { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const read = sources.flatMap((entry) =>
    [...readFileSync(join(entry.parentPath, entry.name), 'utf8').matchAll(/\benv(?:ironment)?\.([A-Z][A-Z_]+)/g)].map(
      ([, name]) => name ?? '',
    ),
  );
  expect(read.length).toBeGreaterThan(5);
  expect([...new Set(read)].filter((name) => variables[name] === undefined)).toEqual([]);
});
