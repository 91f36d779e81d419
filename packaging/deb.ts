import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { Architecture } from './architecture.ts';
import { command } from './command.ts';
import { manifest, readReleases, root, sourceDate, systemVersion } from './source.ts';
import { gzip, listLicences, listUnits, settle, writeTree } from './tree.ts';

/**
 * Started with the host and by the installation: it does nothing without /etc/cpn/join.conf. What
 * else is there waits for a join, or an administrator.
 */
const enabledUnits = ['cpn-join.service'];

const maintainer = 'the cpn authors <cpn-connector@localhost.invalid>';

/** How hard to compress: `none` is for tests, which compress 120 MB many times otherwise. */
export type Compression = 'xz' | 'none';

/**
 * Builds the Debian package of an architecture in a folder, and returns its path. The same sources
 * give the same bytes.
 */
export async function buildDeb(architecture: Architecture, folder: string, compression: Compression): Promise<string> {
  const tree = mkdtempSync(join(tmpdir(), 'cpn-deb-'));
  const file = join(folder, `cpn_${systemVersion()}_${architecture.debian}.deb`);
  try {
    await writeTree(tree, architecture);
    const doc = join(tree, 'usr/share/doc/cpn');
    mkdirSync(doc, { recursive: true });
    const { copyright = '', ...others } = listLicences(architecture);
    writeFileSync(join(doc, 'copyright'), copyright);
    for (const [name, text] of Object.entries(others)) writeFileSync(join(doc, `${name}.gz`), gzip(text));
    writeFileSync(join(doc, 'changelog.gz'), gzip(renderChangelog()));
    const overrides = join(tree, 'usr/share/lintian/overrides');
    mkdirSync(overrides, { recursive: true });
    writeFileSync(join(overrides, 'cpn'), readFileSync(join(root, 'packaging/debian/lintian-overrides')));
    writeControl(tree, architecture);
    settle(tree);
    for (const script of scripts) chmodSync(join(tree, 'DEBIAN', script), 0o755);
    mkdirSync(folder, { recursive: true });
    // Two threads on any machine: how xz splits its blocks must not depend on the number of cores.
    const how = compression === 'none' ? ['-Znone'] : ['-Zxz', '-z6', '--threads-max=2'];
    command(['dpkg-deb', '--root-owner-group', ...how, '--build', tree, file], {
      environment: { SOURCE_DATE_EPOCH: String(sourceDate()) },
    });
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
  return file;
}

function writeControl(tree: string, architecture: Architecture): void {
  const files = listFiles(tree);
  const control = join(tree, 'DEBIAN');
  mkdirSync(control);
  const kibibytes = files.reduce((sum, file) => sum + Math.ceil(statSync(join(tree, file)).size / 1024), 0);
  writeFileSync(join(control, 'control'), renderControl(architecture, kibibytes));
  const sum = (file: string) =>
    createHash('md5')
      .update(readFileSync(join(tree, file)))
      .digest('hex');
  writeFileSync(join(control, 'md5sums'), files.map((file) => `${sum(file)}  ${file}\n`).join(''));
  for (const script of scripts) writeFileSync(join(control, script), renderScript(script));
}

const scripts = ['postinst', 'prerm', 'postrm'] as const;

/** A maintainer script of dpkg, with the names of the units that it is about. */
export function renderScript(script: (typeof scripts)[number]): string {
  const units = listUnits();
  const enabled = units.filter((unit) => enabledUnits.includes(unit));
  const lists = {
    '@UNITS@': units,
    '@ENABLED@': enabled,
    '@STARTED_BY_HAND@': units.filter(
      (unit) => !enabled.includes(unit) && unit.endsWith('.service') && !unit.includes('@'),
    ),
  };
  const text = readFileSync(join(root, 'packaging/debian', script), 'utf8');
  return Object.entries(lists).reduce((known, [mark, names]) => known.replaceAll(mark, names.join(' ')), text);
}

/** The control fields. Node's own needs are those of nodejs.org's build: glibc 2.28. */
export function renderControl({ debian }: Architecture, kibibytes: number): string {
  const fields = {
    Package: 'cpn',
    Version: systemVersion(),
    Architecture: debian,
    Maintainer: maintainer,
    'Installed-Size': String(kibibytes),
    Depends: 'wireguard-tools, iproute2, nftables, libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 10)',
    Recommends: 'iputils-ping',
    // For kernels without WireGuard, which no Debian since 11 has.
    Suggests: 'wireguard-go',
    Section: 'net',
    Priority: 'optional',
    Description: `${shortDescription}\n${longDescription.map((line) => ` ${line}\n`).join('')}`,
  };
  return Object.entries(fields)
    .map(([name, value]) => `${name}: ${value.trimEnd()}\n`)
    .join('');
}

/** What Debian's and rpm's tools show in a list. */
export const shortDescription = 'WireGuard connector for private networks';

/** What they show of the package alone. */
export const longDescription = [
  'Joins a host to a private network over WireGuard and keeps a plain wg-quick',
  'file as the durable truth. It enrols with a short-lived key, routes to the',
  'LANs behind connectors, refuses routes that would cut the host off, and reverts',
  'all its changes when it leaves. It includes a control plane.',
];

/** debian/changelog as policy has it, from CHANGELOG.md. */
export function renderChangelog(): string {
  const releases = readReleases();
  // What is built between releases stands above the newest one.
  if (releases[0]?.version !== manifest.version) {
    const date = new Date(sourceDate() * 1000).toISOString().slice(0, 10);
    releases.unshift({ version: manifest.version, date, changes: ['Not released: built to be tried.'] });
  }
  const entries = releases.map(({ version, date, changes }) => {
    const day = new Date(`${date}T00:00:00Z`).toUTCString().replace('GMT', '+0000');
    const lines = changes.map((change) => `  * ${change.replaceAll(/(.{1,74})(?: |$)/g, '$1\n    ').trimEnd()}`);
    return `cpn (${systemVersion(version)}) stable; urgency=medium\n\n${lines.join('\n')}\n\n -- ${maintainer}  ${day}\n`;
  });
  return entries.join('\n');
}

function listFiles(tree: string): string[] {
  return readdirSync(tree, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(tree, join(entry.parentPath, entry.name)))
    .sort();
}
