import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { variables } from '../../packaging/manual/facts.ts';
import { listUnits } from '../../packaging/tree.ts';
import { completionFor } from '../../src/cli/commands/completion.ts';
import { usualJoinFile } from '../../src/cli/input/join-file.ts';
import { loadCommands } from '../../src/cli/parse/commands.ts';
import { dropInFolders, nameDropIn } from '../../src/core/names/drop-in.ts';
import { defaultFolders } from '../../src/host/open-host.ts';
import { readUnit, wordsOf } from './unit-file.ts';

const repository = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(repository, path), 'utf8');
const units = listUnits();
const pages = [
  ...['README.md', 'SECURITY.md', 'packaging/Containerfile', 'packaging/monitoring/alerts.yml'],
  ...globSync(['docs/*.md', 'packaging/{systemd,examples,manual}/*'], { cwd: repository }),
];

/** What a pattern finds in README, docs, manual, units and examples, with its page. */
function findAll(pattern: RegExp): string[][] {
  return pages.flatMap((page) => [...read(page).matchAll(pattern)].map(([all, found]) => [page, found ?? all]));
}

/** The words of a setting of a unit's service. */
function settingOf(unit: string, key: string): string[] {
  return wordsOf(readUnit(unit).get('Service') ?? new Map(), key).map((word) => word.replace(/^-/, ''));
}

/** A name that the code of a file has. */
const nameIn = (file: string, pattern: RegExp) => pattern.exec(read(file))?.[1];

/** Every path of cpn that a document may name. */
function listPaths(): string[] {
  const { config, state, runtime } = defaultFolders('linux');
  const plane = 'cpn-control-plane.service';
  const folders = settingOf(plane, 'StateDirectory').flatMap((name) => [
    `/var/lib/${name}`,
    `/var/lib/private/${name}`,
  ]);
  const database = nameIn('src/control-plane/store/sqlite/data-folder.ts', /join\(folder, '([\w.-]+)'\)/);
  const login = nameIn('src/store/login-file.ts', /join\(folder, '([\w.-]+)'\)/);
  const previous = nameIn('src/store/state/state-copies.ts', /\$\{path\}(\.\w+)`/);
  const secrets = units
    .filter((unit) => unit.endsWith('.service'))
    .flatMap((unit) => settingOf(unit, 'LoadCredential').map((name) => ({ unit, name })));
  const installed = [...read('packaging/tree.ts').matchAll(/[`'](usr\/(?:share|lib)\/[^`$']+)/g)];
  return [
    ...[config, `${config}/IF.conf`, `${config}/cpn0.conf`, `${config}/wg0.conf`],
    ...[state, `${state}/IF.json`, `${state}/IF.json${previous}`, `${state}/former-memberships`, runtime],
    `${runtime}/serving/cpn0/192.168.50.0_24`,
    ...Object.values(dropInFolders).flatMap((folders) => folders.map((each) => `${each}/${nameDropIn('IF')}`)),
    ...[usualJoinFile, '/etc/cpn', ...settingOf(plane, 'EnvironmentFile'), `~/.config/cpn/${login}`],
    ...folders.flatMap((folder) => [folder, `${folder}/${database}`, `${folder}.before`]),
    ...settingOf(plane, 'RuntimeDirectory').map((name) => `/run/${name}/api.sock`),
    ...secrets.flatMap(({ unit, name }) => [`/etc/credstore/${name}`, `/run/credentials/${unit}/${name}`]),
    ...settingOf('cpn.service', 'ReadWritePaths').map((folder) => `${folder}/cpn.prom`),
    ...installed.map(([, path]) => `/${path}`.replace(/\/$/, '')),
    // Not of the program: where the reader puts a link, a key, a package, the image's program and the audit.
    '/var/lib/cpn-control-plane/audit.log',
    ...['/usr/bin/cpn', '/usr/local/bin/cpn', '/etc/cpn/enrollment-key', '/var/cache/cpn.deb', '/usr/bin/wireguard-go'],
  ];
}

test('each path of ours that a document names is one that the program, a unit or the package uses', () => {
  const known = new Set(listPaths());
  const named = findAll(/(?:~|\/(?:etc|var|run|usr))(?:\/[\w.-]*[\w-])+/g);
  const ours = named.filter(([, path = '']) => /cpn|wireguard/.test(path));
  expect(ours.length).toBeGreaterThan(40);
  expect(ours.filter(([, path = '']) => !known.has(path))).toEqual([]);
});

test('each unit of ours that a document, a script or a command names is in the package', () => {
  const named = [
    ...findAll(/\bcpn(?:-[a-z-]+)?\.(?:service|target|timer|socket|path)\b/g),
    ...findAll(/\bsystemctl (?:[a-z-]+ )+?(cpn[a-z.-]*)/g).map(([page, unit = '']) => [
      page,
      unit.includes('.') ? unit : `${unit}.service`,
    ]),
  ];
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter(([, unit = '']) => !units.includes(unit))).toEqual([]);
  for (const path of ['src/host/systemd/unit.ts', 'packaging/deb.ts', 'packaging/rpm.ts'])
    for (const [unit] of read(path).matchAll(/\bcpn(?:-[a-z]+)*\.(?:service|target)\b/g))
      expect([path, units]).toEqual([path, expect.arrayContaining([unit])]);
});

describe('each port in README, docs, units and examples', async () => {
  const commands = await loadCommands();
  const defaultPort = /defaultPort = (\d+);/.exec(read('src/app/networks/own-endpoint.ts'))?.[1];
  const listen = commands.find(({ name }) => name === 'control-plane serve')?.flags.listen?.byDefault?.split(':')[1];
  const example = commands.find(({ name }) => name === 'run')?.examples.join(' ');

  test.each([
    ['of WireGuard is the default, or the next one for a second network', /--endpoint [\w.]+:(\d+)/g, defaultPort],
    ['of a firewall rule is that of WireGuard', /(?:dport |`)(\d+)(?:\/udp| -j ACCEPT| accept)/g, defaultPort],
    [
      'of the control plane is the default',
      /(?<!--(?:metrics|endpoint) )(?:127\.0\.0\.1|0\.0\.0\.0|203\.0\.113\.1|-p \d+):(\d+)\b/g,
      listen,
    ],
    [
      'of the metrics is that of the example',
      /--metrics [\d.]+:(\d+)/g,
      /--metrics [\d.]+:(\d+)/.exec(example ?? '')?.[1],
    ],
  ])('%s', (_, pattern, expected) => {
    const found = findAll(pattern);
    expect([found.length > 0, expected]).toEqual([true, expect.stringMatching(/^\d+$/)]);
    const second = pattern.source.startsWith('--endpoint') ? String(Number(expected) + 1) : expected;
    expect(found.filter(([, port]) => port !== expected && port !== second)).toEqual([]);
  });
});

test('the default folders in the manual are those of the program', () => {
  const { config, state, runtime } = defaultFolders('linux');
  const documented = ['CPN_CONFIG_DIR', 'CPN_STATE_DIR', 'CPN_RUNTIME_DIR'].map(
    (name) => /Default: (\S+)\.$/.exec(variables[name] ?? '')?.[1],
  );
  expect(documented).toEqual([config, state, runtime]);
});

test.each(['bash', 'zsh', 'fish'] as const)(
  'the completion of %s finds interfaces in the folder of the state',
  async (shell) => {
    const text = await completionFor(shell, await loadCommands());
    expect([...text.matchAll(/\/var\/lib\/[\w-]+/g)].map(([path]) => path)).toEqual([defaultFolders('linux').state]);
  },
);
