import { basename, dirname, join } from 'node:path';
import {
  type Forwarder,
  mostFiles,
  readForwarder,
  type SettingsFiles,
  type StubSettings,
  tooMany,
} from './settings.ts';

/**
 * The words of unbound.conf(5): a comment, a relevant option with its value, a quoted text, the
 * name of another option, or any other word. A line may have several.
 */
const words =
  /#[^\n]*|(forward-addr|forward-host|stub-addr|stub-host|primary|master|include|include-toplevel|name|local-zone):[ \t]*("[^"\n]*"|'[^'\n]*'|[^\s"']+)?|"[^"\n]*"|'[^'\n]*'|[a-z0-9-]+:|[^\s"']+/g;

/** Reads the settings of unbound(8) from the files that its command line names. */
export function readUnbound(argv: readonly string[], files: SettingsFiles): StubSettings {
  const { forwarders, isComplete } = readUnboundSettings(argv, files);
  return { forwarders, isComplete };
}

/** The included folders that a file of this name belongs to. */
export function findUnboundFolders({ main, included }: UnboundSettings, name: string): string[] {
  // unbound-checkconf reads this file.
  if (main !== usualFile) return [];
  const list = (path: string) => (folder: string) => (folder === dirname(path) ? [name] : []);
  const isTaken = (path: string) => expand(path, { list: list(path) })?.includes(join(dirname(path), name)) === true;
  return included.filter((path) => basename(path).includes('*') && isTaken(path)).map(dirname);
}

export function findZonesIn(text: string): string[] {
  return readUnboundSettings([], { read: (path) => (path === usualFile ? text : ''), list: () => [] }).domains;
}

interface UnboundSettings extends StubSettings {
  readonly main: string;
  /** Those of its zones. */
  readonly domains: string[];
  /** Paths and patterns. */
  readonly included: string[];
  /** All files that were read. */
  readonly files: readonly string[];
  /** Why another one may be missing; null if none is. */
  readonly unread: string | null;
}

export function readUnboundSettings(argv: readonly string[], files: SettingsFiles): UnboundSettings {
  const main = findMain(argv);
  const pending = [main];
  const [domains, included]: [string[], string[]] = [[], []];
  const visited = new Set<string>();
  /** Files found by a pattern. These may be empty. */
  const matched = new Set<string>();
  const forwarders: Forwarder[] = [];
  let isComplete = true;
  let unread: string | null = null;
  for (let path = pending.shift(); path !== undefined; path = pending.shift()) {
    if (visited.has(path)) continue;
    if (visited.size >= mostFiles)
      return { main, forwarders, isComplete: false, domains, included, files: [...visited], unread: tooMany };
    visited.add(path);
    const text = files.read(path);
    if (text === '' && !matched.has(path)) isComplete = false;
    for (const [, name, quoted = ''] of text.matchAll(words)) {
      if (name === undefined) continue;
      const value = quoted.replace(/^(["'])(.*)\1$/s, '$2');
      if (name === 'name' || name === 'local-zone') {
        domains.push(value.toLowerCase().replace(/\.$/, ''));
      } else if (name.startsWith('include')) {
        included.push(value);
        const paths = expand(value, files);
        if (paths === null) [isComplete, unread] = [false, `it includes ${value}, which cpn does not read`];
        pending.push(...(paths ?? []));
        for (const each of paths ?? []) if (each !== value) matched.add(each);
      } else {
        const forwarder = readForwarder(value.replace(/#.*$/s, ''), '@');
        if (forwarder === null) isComplete = false;
        else forwarders.push(forwarder);
      }
    }
  }
  return { main, forwarders, isComplete, domains, included, files: [...visited], unread };
}

const usualFile = '/etc/unbound/unbound.conf';

/** The file after `-c`, which may follow other letters, or have its value in the same word. */
function findMain(argv: readonly string[]): string {
  const at = argv.findIndex((word, index) => index > 0 && /^-[dhpvV]*c/.test(word));
  if (at < 0) return usualFile;
  return argv[at]?.replace(/^-[dhpvV]*c/, '') || (argv[at + 1] ?? '');
}

/** Expands an absolute path, whose last part may contain one `*`. Null for any other path. */
function expand(path: string, { list }: Pick<SettingsFiles, 'list'>): string[] | null {
  const [before = '', after, ...more] = basename(path).split('*');
  const folder = dirname(path);
  if (!folder.startsWith('/') || more.length > 0 || /[?[*]/.test(folder + before + (after ?? ''))) return null;
  if (after === undefined) return [path];
  const names = list(folder).filter((name) => name.startsWith(before) && name.endsWith(after));
  return names.filter((name) => !name.startsWith('.') || before !== '').map((name) => join(folder, name));
}
