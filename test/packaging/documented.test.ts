import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exitMeanings, files, variables } from '../../packaging/manual/facts.ts';
import { exitCodes } from '../../src/cli/exit-code.ts';
import { variableOf } from '../../src/cli/input/input.ts';
import { loadCommands } from '../../src/cli/parse/commands.ts';
import { defaultFolders } from '../../src/host/open-host.ts';

const repository = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(repository, path), 'utf8');
const commands = await loadCommands();
const pages = ['README.md', 'SECURITY.md', ...globSync('docs/*.md', { cwd: repository })];

test('every variable in README, docs, units, examples and manual is one of a flag or of the program', () => {
  const texts = [...pages, ...globSync('packaging/{systemd,examples,manual}/*', { cwd: repository })];
  const named = new Set(
    texts.flatMap((path) => [...read(path).matchAll(/\bCPN_[A-Z]+(?:_[A-Z]+)*\b/g)].map(([name]) => name)),
  );
  const known = new Set([
    ...Object.keys(variables),
    ...commands.flatMap(({ flags }) => Object.keys(flags).map(variableOf)),
  ]);
  expect(named.size).toBeGreaterThan(15);
  expect([...named].filter((name) => !known.has(name))).toEqual([]);
});

test('the exit codes of README and manual are those of the program', () => {
  const rows = [...read('README.md').matchAll(/^\| (\d) \| ([^|]+) \|$/gm)].map(([, code]) => Number(code));
  expect(rows.toSorted()).toEqual(Object.values(exitCodes).toSorted());
  expect(Object.keys(exitMeanings)).toEqual(Object.keys(exitCodes));
});

test('the files in the manual are in the folders of the program, and have its names', () => {
  const { config, state, runtime } = defaultFolders('linux');
  expect(Object.keys(files)).toEqual([
    ...[`${config}/IF.conf`, `${state}/IF.json`, `${state}/former-memberships`, '/etc/cpn/join.conf', `${runtime}/`],
    ...['~/.config/cpn/login.json', '/var/lib/cpn-control-plane/'],
  ]);
  expect(read('src/store/file-store.ts')).toContain("from './former-networks.ts'");
  expect(read('src/store/former-networks.ts')).toContain("'former-memberships'");
  expect(read('src/cli/input/join-file.ts')).toContain("'/etc/cpn/join.conf'");
  expect(read('src/cli/commands/control-plane.ts')).toContain("'/var/lib/cpn-control-plane'");
});

test('every port in the units and examples that the control plane listens on is its default', () => {
  const listen = commands.find(({ name }) => name === 'control-plane serve')?.flags.listen?.byDefault ?? '';
  const texts = [...pages, ...globSync('packaging/{systemd,examples}/*', { cwd: repository })].map(read);
  const ports = texts.flatMap((text) => [...text.matchAll(/CPN_LISTEN=[\d.]+:(\d+)/g)].map(([, port]) => port));
  expect(ports.length).toBeGreaterThan(1);
  expect(new Set(ports)).toEqual(new Set([listen.split(':')[1]]));
});

const defaultOf = (command: string, flag: string) =>
  commands.find(({ name }) => name === command)?.flags[flag]?.byDefault;

test.each([
  ['docs/console.md', /observe, by default every (\d+) s/, defaultOf('run', 'interval')],
  [
    'docs/control-plane.md',
    /is kept for (\d+) days \(`--presence-days`\)/,
    defaultOf('control-plane serve', 'presence-days'),
  ],
  ['docs/hosts.md', /`--type` is `(\w+)` for servers \(the default\)/, defaultOf('join', 'type')],
  ['docs/connectors.md', /--priority N`, 0 to 1000, (\d+) by default/, /default (\d+)/.exec(priority())?.[1]],
])('a default of %s is that of the program: %s', (page, pattern, expected) => {
  const [, documented] = pattern.exec(read(page)) ?? [];
  expect(documented).toBeDefined();
  expect(documented).toBe(expected);
});

function priority(): string {
  return commands.find(({ name }) => name === 'peer update')?.flags.priority?.summary ?? '';
}

test('the limits in the table of docs/control-plane.md are the defaults of their flags, each of which it has', () => {
  const rows = [...read('docs/control-plane.md').matchAll(/^\|[^|]+\| ([\d,]+)[^|]*\| `--(limit-[a-z-]+)` \|$/gm)];
  const documented = rows.map(([, most = '', flag = '']) => [flag, most.replaceAll(',', '')]);
  expect(documented).toEqual(documented.map(([flag = '']) => [flag, defaultOf('control-plane serve', flag)]));
  const serve = commands.find(({ name }) => name === 'control-plane serve')?.flags ?? {};
  const limits = Object.keys(serve).filter((flag) => flag.startsWith('limit-'));
  expect([...new Set(documented.map(([flag]) => flag))].toSorted()).toEqual(limits.toSorted());
});
