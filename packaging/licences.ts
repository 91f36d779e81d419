import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The folders of the packages that files of a bundle come from, each once, by name. */
export function findPackages(inputs: readonly string[]): string[] {
  const folders = inputs.flatMap((input) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? []);
  return [...new Set(folders)].sort();
}

/**
 * The notices of the packages that are parts of a bundle: name, version, and the licence as the
 * package brings it.
 *
 * @throws Error for a package without a licence: it must not be distributed
 */
export function collectNotices(root: string, folders: readonly string[]): string {
  const notices = folders.map((folder) => describeLicence(join(root, folder)));
  return `cpn contains parts of the packages below, under their licences.\n\n${notices.join('\n')}`;
}

function describeLicence(folder: string): string {
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly name: string;
    readonly version: string;
    readonly license?: string;
    readonly author?: string | { readonly name: string };
  };
  const file = readdirSync(folder).find((each) => /^(licen[cs]e|copying|unlicense)(\.|$)/i.test(each));
  if (file === undefined && license === undefined) throw new Error(`${folder} names no licence`);
  const by = typeof author === 'object' ? author.name : author;
  const text =
    file === undefined ? `Licence: ${license}. Copyright: ${by ?? 'its authors'}.` : read(join(folder, file));
  const extra = join(folder, 'NOTICE');
  const rule = '-'.repeat(80);
  return [rule, `${name} ${version}`, rule, '', text, ...(existsSync(extra) ? [read(extra)] : []), ''].join('\n');
}

const read = (file: string): string => readFileSync(file, 'utf8').replaceAll('\r\n', '\n').trim();
