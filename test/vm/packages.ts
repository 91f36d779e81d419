import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { command } from '../../packaging/command.ts';
import { root } from '../../packaging/source.ts';

/** A Debian package of these sources as a file, and its version. */
interface Package {
  readonly file: string;
  readonly version: string;
}

/** Builds the Debian package of these sources twice, as they are and as the next version; dist stays as it is. */
export function buildPackages(work: string): { old: Package; next: Package } {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };
  return { old: build(join(work, 'old'), version), next: build(join(work, 'next'), nextOf(version)) };
}

function build(folder: string, version: string): Package {
  mkdirSync(folder);
  const quickly = ['--fast', '--unchecked', '--arch', 'amd64'];
  command([join(root, 'scripts/package'), '--version', version, ...quickly, '--folder', folder, 'deb']);
  const [file] = readdirSync(folder);
  if (file === undefined) throw new Error(`scripts/package left no package of ${version} in ${folder}`);
  return { file: join(folder, file), version };
}

/** The version that follows, as `0.1.1` does `0.1.0`. */
function nextOf(version: string): string {
  const [, line = '', patch = ''] = /^(\d+\.\d+\.)(\d+)/.exec(version) ?? [];
  return `${line}${Number(patch) + 1}`;
}
