import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { type ChainedEntry, digestEntry } from '../../core/audit/chain.ts';
import type { ExportedLink } from '../../core/audit/verify-chain.ts';
import { quote, WrongUsage } from '../../core/errors/index.ts';

/**
 * Reads entries of the audit from a file: JSON lines of `--audit-log`, of a webhook or of syslog,
 * or the document of `cpn audit --json`. Leaves out entries that were not chained yet.
 */
export async function readExportedAudit(path: string): Promise<ExportedLink[]> {
  const links: ExportedLink[] = [];
  let [number, document] = [0, ''];
  try {
    for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
      number += 1;
      // The document of --json is one value in many lines.
      if (document !== '' || /^\s*\{\s*$/.test(line)) document += `${line}\n`;
      else links.push(...toLinks(parse(line)));
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new WrongUsage(`--against ${quote(path)} cannot be read (${code}); check the path and its permissions`);
  }
  links.push(...toLinks(parse(document)));
  if (links.length > 0) return links;
  throw new WrongUsage(
    `--against ${quote(path)} has no chained entry in its ${number} lines; give a file of --audit-log, or of "cpn audit --json"`,
  );
}

/** The JSON of a text, after a header of syslog. Undefined without one. */
function parse(line: string): unknown {
  const start = line.indexOf('{');
  if (start < 0) return undefined;
  try {
    return JSON.parse(line.slice(start));
  } catch {
    return undefined;
  }
}

/** The links in an entry, a message with it, or a document of entries. */
function toLinks(value: unknown): ExportedLink[] {
  if (Array.isArray(value)) return value.flatMap(toLinks);
  if (typeof value !== 'object' || value === null) return [];
  const { data, entries, chain, ...entry } = value as Record<string, unknown>;
  if (typeof data === 'object' && data !== null) return toLinks(data);
  if (Array.isArray(entries)) return toLinks(entries);
  const { seq, hash } = (chain ?? {}) as Partial<Record<string, unknown>>;
  if (typeof seq !== 'number' || typeof hash !== 'string') return [];
  const known = entry as unknown as ChainedEntry;
  return [{ id: known.id, seq, hash, digest: digestEntry(known) }];
}
