import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The settings of a section in their order; systemd.syntax(7). */
export type Section = ReadonlyMap<string, readonly string[]>;

const folder = join(import.meta.dirname, '../../packaging/systemd');

/** The sections of a unit in packaging/systemd. @throws for a line that is neither comment, section nor setting */
export function readUnit(name: string): ReadonlyMap<string, Section> {
  return parseUnit(readFileSync(join(folder, name), 'utf8'));
}

/** The sections of a unit's text. An empty value resets what was set before. */
export function parseUnit(text: string): ReadonlyMap<string, Section> {
  const sections = new Map<string, Map<string, string[]>>();
  let section: Map<string, string[]> | undefined;
  for (const line of text.replaceAll('\\\n', ' ').split('\n')) {
    if (/^\s*([#;].*)?$/.test(line)) continue;
    const [, title] = /^\[(\w+)\]$/.exec(line) ?? [];
    const [, key, value = ''] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (title !== undefined) {
      section = sections.get(title) ?? new Map();
      sections.set(title, section);
    } else if (key === undefined || section === undefined) throw new Error(`neither a section nor a setting: ${line}`);
    else section.set(key, value === '' ? [] : [...(section.get(key) ?? []), value]);
  }
  return sections;
}

/** The words of a setting, over all its lines. */
export function wordsOf(section: Section, key: string): string[] {
  return (section.get(key) ?? []).flatMap((line) => line.split(/\s+/)).filter((word) => word !== '');
}

/** What the sandbox of a service leaves of a path; systemd.exec(5). */
export type Access = 'rw' | 'ro' | 'none';

/** Kept or made by ProtectSystem=strict and PrivateDevices=yes, and the groups of control, which ProtectControlGroups= takes. */
const strict: readonly (readonly [string, Access])[] = [
  ['/', 'ro'],
  ['/dev', 'ro'],
  ['/dev/shm', 'rw'],
  ['/proc', 'rw'],
  ['/sys', 'ro'],
];
const kernelTunables = ['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus', '/proc/acpi', '/sys'];

/** The access of a service to a path: the most specific setting decides. */
export function accessTo(service: Section, path: string): Access {
  const isOn = (key: string) => service.get(key)?.at(-1) === 'yes';
  const bare = (key: string) => wordsOf(service, key).map((word) => word.replace(/^[-+]+/, '').split(':')[0] ?? '');
  const all = (paths: readonly string[], access: Access) => paths.map((each) => [each, access] as const);
  if (service.get('ProtectSystem')?.at(-1) !== 'strict') return 'rw';
  const rules = [
    ...strict,
    ...(isOn('ProtectHome') ? all(['/home', '/root', '/run/user'], 'none') : []),
    ...(isOn('PrivateTmp') ? all(['/tmp', '/var/tmp'], 'rw') : []),
    ...(isOn('ProtectKernelTunables') ? all(kernelTunables, 'ro') : []),
    ...all(
      bare('StateDirectory').map((name) => `/var/lib/${name}`),
      'rw',
    ),
    ...all(
      bare('RuntimeDirectory').map((name) => `/run/${name}`),
      'rw',
    ),
    ...all(bare('BindPaths'), 'rw'),
    ...all(bare('ReadWritePaths'), 'rw'),
    ...all(bare('ReadOnlyPaths'), 'ro'),
    ...all(bare('InaccessiblePaths'), 'none'),
  ];
  // /var/run is a link to /run on every Debian and Fedora.
  const real = path.replace(/^\/var\/run\b/, '/run');
  const fitting = rules.filter(([prefix]) => prefix === '/' || `${real}/`.startsWith(`${prefix}/`));
  return fitting.reduce((best, each) => (each[0].length >= best[0].length ? each : best))[1];
}
