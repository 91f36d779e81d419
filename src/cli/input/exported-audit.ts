import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type ChainedEntry, digestEntry } from '../../core/audit/chain.ts';
import type { ExportedLink } from '../../core/audit/verify-chain.ts';
import { quote, WrongUsage } from '../../core/errors/index.ts';

export interface ExportedAudit {
  readonly links: readonly ExportedLink[];
  /** The number of lines that are no entry, and the first of them; null for none. */
  readonly unread: { readonly count: number; readonly first: number } | null;
}

/** Characters. Far above the largest entry. */
const mostOfLine = 1_000_000;

/**
 * Reads entries of the audit from a file: JSON lines of `--audit-log`, of a webhook or of syslog,
 * or documents of `cpn audit --json`. Leaves out entries that were not chained yet.
 */
export async function readExportedAudit(path: string): Promise<ExportedAudit> {
  const links: ExportedLink[] = [];
  let unread: { count: number; first: number } | null = null;
  let [number, document] = [0, ''];
  const read = (text: string) => {
    const found = toLinks(text);
    if (found !== null) links.push(...found);
    else if (text.trim() !== '') unread = { count: (unread?.count ?? 0) + 1, first: unread?.first ?? number };
  };
  for await (const line of readLines(path)) {
    number += 1;
    // A document of --json spans many lines. The first is an opening brace, the last a closing one.
    if (document === '' && line.trimEnd() !== '{') read(line);
    else document += `${line}\n`;
    if (document !== '' && (line.trimEnd() === '}' || document.length > mostOfDocument)) {
      read(document);
      document = '';
    }
  }
  read(document);
  if (links.length > 0) return { links, unread };
  throw new WrongUsage(
    `--against ${quote(path)} has no chained entry in its ${number} lines; give a file of --audit-log, or of "cpn audit --json"`,
  );
}

const mostOfDocument = 100_000_000;

/** Lines end in a line feed alone: other characters of Unicode that end lines are in names. */
async function* readLines(path: string): AsyncGenerator<string> {
  try {
    if (!(await stat(path)).isFile()) throw new WrongUsage(`--against ${quote(path)} is no regular file`);
    let rest = '';
    for await (const chunk of createReadStream(path, 'utf8')) {
      const lines = `${rest}${chunk}`.split('\n');
      rest = (lines.pop() ?? '').slice(0, mostOfLine);
      yield* lines;
    }
    if (rest !== '') yield rest;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new WrongUsage(`--against ${quote(path)} cannot be read (${code}); check the path and its permissions`);
  }
}

/** The links in a line after a header of syslog, or in a document. Null for any other text. */
function toLinks(text: string): ExportedLink[] | null {
  try {
    return linksIn(JSON.parse(text.slice(Math.max(0, text.indexOf('{')))));
  } catch {
    // No JSON, or JSON that is nested too deeply.
    return null;
  }
}

/** The links in an entry, a message with it, or a document of entries. */
function linksIn(value: unknown): ExportedLink[] | null {
  if (typeof value !== 'object' || value === null) return null;
  const { data, entries, chain, ...entry } = value as Record<string, unknown>;
  if (Array.isArray(entries)) return entries.flatMap((each) => linksIn(each) ?? []);
  if (typeof data === 'object' && data !== null) return linksIn(data);
  if (chain === null) return [];
  const { seq, hash } = (chain ?? {}) as Partial<Record<string, unknown>>;
  if (!Number.isSafeInteger(seq) || (seq as number) < 1 || typeof hash !== 'string') return null;
  const { id, at, action } = entry;
  if (typeof id !== 'number' || typeof at !== 'string' || typeof action !== 'string') return null;
  return [{ id, at, action, seq: seq as number, hash, digest: digestEntry(entry as unknown as ChainedEntry) }];
}
