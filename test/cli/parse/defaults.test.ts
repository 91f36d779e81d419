import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { variables } from '../../../packaging/manual/facts.ts';
import { manualPages } from '../../../packaging/manual/pages.ts';
import { defaultConfirmMs } from '../../../src/app/reconcile/pass.ts';
import { defaultHoldSeconds } from '../../../src/app/reconcile/refresh.ts';
import type { Flag } from '../../../src/cli/input/flags.ts';
import { loadCommands } from '../../../src/cli/parse/commands.ts';
import { listedOptions } from '../../../src/cli/parse/host-options.ts';
import { usualSessionLimits } from '../../../src/control-plane/domain/session-limits.ts';
import { defaultOptions } from '../../../src/core/map/options.ts';
import { chooseDriver, defaultFolders } from '../../../src/host/open-host.ts';

const repository = join(import.meta.dirname, '../../..');
const commands = await loadCommands();
const read = (path: string) => readFileSync(join(repository, path), 'utf8');
const sources = new Map(globSync('src/cli/**/*.ts', { cwd: repository }).map((path) => [path, read(path)]));

/** Each flag with a default, as `command --flag`. */
const withDefault = commands.flatMap(({ name, flags }) =>
  Object.entries(flags).flatMap(([flag, facts]) =>
    facts.byDefault === undefined ? [] : [{ name, flag, facts, byDefault: facts.byDefault }],
  ),
);

/** The code that reads a flag, in the file of its command first: its fallback as it is written. */
function findFallback(command: string, flag: string): string | null {
  const own = [...sources].filter(([, text]) => text.includes(`  name: '${command}',`));
  for (const [, text] of [...own, ...sources]) {
    const fallback = readFallback(text, flag);
    if (fallback !== null) return fallback;
  }
  return null;
}

function readFallback(text: string, flag: string): string | null {
  const method = `\\b(?:input|given)\\.(?:text|number|duration|period)\\('${flag}'[^)]*\\)`;
  const patterns = [`${method}\\s*\\?\\?\\s*([^,;)\\s]+)`, `readLimit\\(input, '${flag}', (\\d+)\\)`];
  for (const pattern of patterns) {
    const [, fallback] = new RegExp(pattern).exec(text) ?? [];
    if (fallback !== undefined) return resolve(text, fallback);
  }
  const [isSwitch, initial] = new RegExp(`\\.switch\\('${flag}'(?:, (true|false))?\\)`).exec(text) ?? [];
  return isSwitch === undefined ? null : initial === 'true' ? 'yes' : 'no';
}

/** A literal, or the literal of a constant in the same file. */
function resolve(text: string, expression: string): string {
  const [, constant = expression] = new RegExp(`const ${expression.replaceAll(/\W/g, '')} = ([^;]+);`).exec(text) ?? [];
  return constant.replaceAll(/^'|'$|(?<=\d)_(?=\d)/g, '');
}

/** Defaults that are a value elsewhere: what the use case takes for a flag that is left out. */
const elsewhere: Readonly<Record<string, () => string>> = {
  'confirm-within': () => `${defaultConfirmMs / 1000}s`,
  'run --interval': () => String(defaultHoldSeconds),
  'join --wait': () => String(Number(constant('src/app/join/await-handshake.ts', 'defaultTimeout')) / 1000),
  'session-idle': () => `${usualSessionLimits.idleMs / 3_600_000}h`,
  'session-max': () => `${usualSessionLimits.maxMs / 86_400_000}d`,
  'api --timeout': () => {
    const [, usual, withFiles] =
      /const patience = \{ usual: (\d+), withFiles: (\d+),/.exec(read('src/cli/api/call.ts')) ?? [];
    return `${usual}, with files ${withFiles}`;
  },
};

function constant(path: string, name: string): string {
  return resolve(read(path), name);
}

/** Defaults in words, each with the file and the code that it describes. */
const described: Readonly<Record<string, readonly [words: string, path: string, code: string]>> = {
  'join --name': ['the host name', 'src/cli/commands/join.ts', "name: input.text('name') ?? hostname(),"],
  'join --interface': [
    'first free cpnN',
    'src/cli/commands/join.ts',
    'interface: link === undefined ? null : parseLinkName(',
  ],
  'export --interface': [
    "this host's, with wgN for cpnN",
    'src/cli/commands/export.ts',
    "readLink(input, link.replace(/^cpn/, 'wg'))",
  ],
  'export --via': ['connectors where one has an endpoint', 'src/cli/api/device-connector.ts', "input.text('via')"],
  'key create --type': [
    'origin and admin_device',
    'src/cli/commands/key.ts',
    "types.length > 0 ? [...new Set(types)] : (['origin', 'admin_device'] as const).slice()",
  ],
  'key create --route': ['any', 'src/cli/commands/key.ts', '...(routes.length > 0 && { routes })'],
  'key create --peer-expires': ['for ever', 'src/cli/commands/key.ts', 'if (seconds === undefined) return {};'],
  'token create --expires-in-days': [
    'until revoked',
    'src/cli/commands/token.ts',
    '...(days !== undefined && { expires_in_days: days })',
  ],
  'control-plane serve --oidc-scopes': [
    'profile,email,offline_access',
    'src/cli/parse/oidc-flags.ts',
    "input.text('oidc-scopes') ?? 'profile,email,offline_access'",
  ],
  'control-plane serve --oidc-token-max-age': [
    '30d',
    'src/cli/parse/oidc-flags.ts',
    "input.period('oidc-token-max-age', 3600, 3650 * 86_400) ?? 30 * 86_400",
  ],
  'events --type': ['all', 'src/cli/commands/events.ts', "input.list('type')"],
};

const saved = ['the saved one, else HTTPS_PROXY and NO_PROXY', 'the saved ones, else the CAs of this machine'];

/** What stands for no value, in words. */
const withoutValue: Readonly<Record<string, string>> = {
  listenPort: "the endpoint's, else any",
  mtu: 'derived from the underlay and the path MTU',
  rotateEvery: 'for ever',
};

/** The default of an option of `join` in the table of options; undefined for another flag. */
function optionDefault(flag: string): string | null | undefined {
  const [, found] = listedOptions.find(([name]) => name === flag) ?? [];
  if (found === undefined || found.option === 'networkSecret') return undefined;
  const value = defaultOptions[found.option];
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'string' ? value : (withoutValue[found.option] ?? null);
}

/** What the program takes for a flag that is left out, in the words of the help. */
function resolved(command: string, flag: string, { byDefault }: Flag): string | null {
  const key = `${command} --${flag}`;
  const option = command === 'join' ? optionDefault(flag) : undefined;
  if (option !== undefined) return option;
  const value = elsewhere[key] ?? elsewhere[flag];
  if (value !== undefined) return value();
  const known = described[key];
  if (known !== undefined) return read(known[1]).includes(known[2]) ? known[0] : null;
  // `set` reads only flags that were given; `src/cli/input/service-address.ts` reads what is saved.
  if (command === 'set' && /^unchanged(; ignores CPN_[A-Z_]+)?$/.test(byDefault ?? '')) return byDefault ?? null;
  if (['proxy', 'ca-file'].includes(flag) && saved.includes(byDefault ?? '')) return byDefault ?? null;
  return findFallback(command, flag);
}

describe('the default that help, manual and completions name', () => {
  it.each(withDefault.map(({ name, flag, facts }) => [name, flag, facts] as const))(
    'is that of the program: cpn %s --%s',
    (name, flag, facts) => {
      expect(resolved(name, flag, facts)).toBe(facts.byDefault);
    },
  );

  it('stands in the page of the manual', () => {
    const pages = manualPages(commands, { version: '1.2.3', date: '2025-01-31' });
    const plain = (text: string) =>
      text
        .replaceAll(/\\f[A-Z]|\\&/g, '')
        .replaceAll('\\-', '-')
        .replaceAll('\\e', '\\');
    const named = [...pages].flatMap(([page, text]) =>
      plain(text)
        .split('\n.TP\n')
        .flatMap((entry) => {
          const [, flag] = /^--([a-z0-9-]+)/.exec(entry) ?? [];
          const [, byDefault] = /^Default: (.*)\.$/m.exec(entry) ?? [];
          return flag === undefined || byDefault === undefined ? [] : [`${page} ${flag} ${byDefault}`];
        }),
    );
    const expected = withDefault.map(
      ({ name, flag, byDefault }) => `cpn-${name.replaceAll(' ', '-')}.1 ${flag} ${byDefault}`,
    );
    expect(named.toSorted()).toEqual(expected.toSorted());
  });
});

test('a flag with the fallback of another flag, or with none, is found out', () => {
  expect(readFallback("input.number('wait', 0, 60) ?? usual;\nconst usual = 4_500;", 'wait')).toBe('4500');
  expect(readFallback("input.switch('console', true)", 'console')).toBe('yes');
  expect(readFallback("input.number('wait', 0, 60) ?? usual", 'timeout')).toBeNull();
});

test('a default within a summary is one of these, which tests of their commands hold', () => {
  const summaries = commands.flatMap(({ name, flags }) =>
    Object.entries(flags).flatMap(([flag, { summary }]) => {
      const [words] = /default.*/.exec(summary) ?? [];
      return words === undefined || words === 'default' ? [] : [`${name} --${flag}: ${words}`];
    }),
  );
  expect(summaries.toSorted()).toEqual([
    'control-plane serve --metrics: default: on --listen, for loopback clients',
    'control-plane serve --webhook-events: default: all events',
    'events --after: default: the newest ones',
    'peer update --priority: default 0',
    'run --metrics: defaults to 127.0.0.1',
  ]);
  // The text that `run --metrics PORT` makes of a port alone.
  expect(read('src/cli/commands/run.ts')).toMatch(/\? `127\.0\.0\.1:\$\{text\}` : text/);
});

test('the defaults of variables in the manual are those of the program', () => {
  const named = Object.fromEntries(
    Object.entries(variables).flatMap(([name, text]) => {
      const [, value] = /Default: (.+?)\.(?: |$)/.exec(text) ?? [];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  const { config, state, runtime } = defaultFolders('linux');
  expect(['linux', 'win32', 'darwin'].map((each) => chooseDriver(undefined, each as NodeJS.Platform))).toEqual([
    ...['linux', 'windows', 'wg-quick'],
  ]);
  expect(read('src/cli/admin.ts')).toContain("environment.XDG_CONFIG_HOME ?? join(homedir(), '.config')");
  expect(named).toEqual({
    CPN_CONFIG_DIR: config,
    CPN_STATE_DIR: state,
    CPN_RUNTIME_DIR: runtime,
    CPN_HOST_DRIVER: 'the one for the operating system',
    XDG_CONFIG_HOME: '~/.config',
    SSL_CERT_FILE: 'those of OpenSSL',
  });
});
