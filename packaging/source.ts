import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { command } from './command.ts';

/** The folder of the project. */
export const root = join(import.meta.dirname, '..');

/**
 * The built program that packages carry: `dist`, or the folder CPN_BUILD_FOLDER, for a build that
 * is to leave `dist` alone.
 */
export const dist = resolve(root, process.env.CPN_BUILD_FOLDER || 'dist');

/** package.json, of which only these are read. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

const file = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

/**
 * What is built. `scripts/package --version` sets its version by CPN_BUILD_VERSION; package.json's
 * is the default.
 */
export const manifest: Manifest = { ...file, version: process.env.CPN_BUILD_VERSION || file.version };

/**
 * The version as dpkg and rpm write it: to them a `-` begins the packager's part, and `~` is what
 * comes before a release.
 */
export function systemVersion(version = manifest.version): string {
  const [, release = version, before] = /^([^-+]*)-(.*)$/.exec(version) ?? [];
  return before === undefined ? version.replaceAll('-', '.') : `${release}~${before.replaceAll('-', '.')}`;
}

/**
 * Seconds since 1970 that stand for the time of a build (reproducible-builds.org):
 * SOURCE_DATE_EPOCH, or the last commit, or, for sources without their history, the day of the
 * newest entry in CHANGELOG.md.
 */
export function sourceDate(): number {
  const given = process.env.SOURCE_DATE_EPOCH;
  if (given !== undefined && /^[0-9]{1,11}$/.test(given)) return Number(given);
  if (existsSync(join(root, '.git'))) return Number(command(['git', '-C', root, 'log', '-1', '--format=%ct']));
  const [newest] = readReleases();
  return Date.parse(`${newest?.date}T00:00:00Z`) / 1000;
}

/** An entry of CHANGELOG.md: what a version brought, a line each. */
export interface Release {
  readonly version: string;
  readonly date: string;
  readonly changes: readonly string[];
}

/** The releases that CHANGELOG.md names, newest first. */
export function readReleases(text = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')): Release[] {
  return text.split(/^## /m).flatMap((part) => {
    const [, version, date] = /^\[(\d[^\]]*)\] - (\d{4}-\d\d-\d\d)\n/.exec(part) ?? [];
    if (version === undefined || date === undefined) return [];
    const changes = part
      .split(/^- /m)
      .slice(1)
      .map((change) => (change.split(/\n(?:\n|#)/)[0] ?? '').replace(/\s+/g, ' ').trim());
    return [{ version, date, changes }];
  });
}
