/**
 * Builds packages from these sources, and prints what each is: node scripts/package.ts [--folder
 * DIR] [--arch NAME] [deb|rpm|npm|container…]
 *
 * Without a word all of them are built, for both architectures, and what is in dist is packed as it
 * stands. lintian may find no error in a Debian package. For tests, `--fast` leaves out the
 * compression of system packages and lintian for the second architecture, and `--unchecked` lintian
 * and the start time.
 */
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { architectures } from '../packaging/architecture.ts';
import { command } from '../packaging/command.ts';
import { buildContainer, checkContainer } from '../packaging/container.ts';
import { buildDeb } from '../packaging/deb.ts';
import { buildNpm } from '../packaging/npm.ts';
import { buildRpm } from '../packaging/rpm.ts';
import { dist, manifest } from '../packaging/source.ts';
import { measureStart } from '../packaging/start-time.ts';

const kinds = ['deb', 'rpm', 'npm', 'container'] as const;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    folder: { type: 'string', default: join(import.meta.dirname, '..', 'dist-packages') },
    arch: { type: 'string', multiple: true, default: architectures.map(({ debian }) => debian) },
    fast: { type: 'boolean', default: false },
    unchecked: { type: 'boolean', default: false },
    // For scripts/package, which builds the program unless --built is given.
    built: { type: 'boolean', default: false },
  },
});
const wanted = positionals.length === 0 ? kinds : positionals;
for (const word of [...wanted, ...values.arch]) {
  if (![...kinds, ...architectures.map(({ debian }) => debian)].some((known) => known === word)) {
    throw new Error(`"${word}" is no package and no architecture; name ${kinds.join(', ')}, or --arch amd64 or arm64`);
  }
}

const holds = command([process.execPath, join(dist, 'start.cjs'), '--version']).trim();
if (holds !== manifest.version) {
  throw new Error(
    `${dist} holds cpn ${holds}, and the packages are of ${manifest.version}; build it, or leave out --built`,
  );
}

const folder = resolve(values.folder);
const compression = values.fast ? 'none' : 'xz';
/** What is wrong with a package that is not compressed. */
const accepted = ['--suppress-tags', 'uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball'];
/** To lintian, wrong spelling in a program is no error. */
const faster = ['--dont-check-part', 'binaries/spelling'];
const built: { file: string; start: string }[] = [];
const debs: string[] = [];
for (const architecture of architectures.filter(({ debian }) => values.arch.includes(debian))) {
  if (wanted.includes('deb')) {
    const file = await buildDeb(architecture, folder, compression);
    debs.push(file);
    // Another machine's program cannot be started here.
    built.push({ file, start: architecture.node === process.arch && !values.unchecked ? describeStart(file) : '-' });
  }
  if (wanted.includes('rpm')) built.push({ file: await buildRpm(architecture, folder, compression), start: '-' });
}
if (debs.length > 0 && !values.unchecked) {
  // Packages of two architectures differ only in Node, which lintian takes longest to read.
  const checked = values.fast ? [...faster, ...accepted, ...debs.slice(0, 1)] : debs;
  command(['lintian', '--allow-root', '--fail-on', 'error', ...checked]);
}
if (wanted.includes('npm')) built.push({ file: await buildNpm(folder), start: '-' });
if (wanted.includes('container')) {
  const file = await buildContainer(folder);
  if (!values.unchecked) checkContainer(file);
  built.push({ file, start: '-' });
}

const rows = built.map(({ file, start }) => [
  basename(file),
  `${(statSync(file).size / 2 ** 20).toFixed(1)} MiB`,
  createHash('sha256').update(readFileSync(file)).digest('hex'),
  start,
]);
const table = [['file', 'size', 'sha256', 'start'], ...rows];
const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
for (const row of table) {
  process.stdout.write(
    `${row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()}\n`,
  );
}

function describeStart(file: string): string {
  const { program, node } = measureStart(file);
  return `${program.toFixed(0)} ms, ${(program / node).toFixed(2)} x node -e 0`;
}
