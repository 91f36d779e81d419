import { CpnError } from '../../../core/errors/index.ts';
import type { FilterTable, NamedSet } from '../../../core/forward/foreign/chain.ts';
import { type ForeignDrops, findForeignDrops, type PacketPaths } from '../../../core/forward/foreign/foreign-drops.ts';
import { parseOutput } from '../../process/command-error.ts';
import type { OutputCache } from '../../process/output-cache.ts';
import type { Run } from '../../process/run.ts';
import { readIfThere } from '../underlay.ts';
import { parseFilterTables, rulesetArgs, setArgs } from './filter-tables.ts';
import { hasLegacyTables, parseLegacyTables } from './legacy-tables.ts';

/** Milliseconds for all sets of one check. `nft` lists 20,000 prefixes in a fifth of that. */
const readingMs = 500;
/** Bytes of one set: about 20,000 prefixes. */
const maxSetBytes = 1024 * 1024;
/** A set may decide whether packets reach a rule with another set. Each round reads one level. */
const maxRounds = 4;

/**
 * {@link Host.foreignDrops}. Reads the rules without the elements of named sets, and then the sets
 * on which a verdict depends. A set that is too large stays unread.
 */
export async function readForeignDrops(
  run: Run,
  outputCache: OutputCache,
  link: string,
  paths: PacketPaths,
): Promise<ForeignDrops> {
  const [listing, legacy] = await Promise.all([run('nft', rulesetArgs, { outputCache }), readLegacyTables(run)]);
  const listedSets: string[] = [];
  const tried = new Set<string>();
  const endsAt = performance.now() + readingMs;
  for (let round = 1; ; round += 1) {
    const tables = parseOutput('nft', listing, (text) => parseFilterTables(text, listedSets));
    const drops = findForeignDrops([...tables, ...legacy], link, paths);
    const { forward = [], inbound = [] } = drops.unread ?? {};
    const sets = [...forward, ...inbound]
      .filter((each) => each.kind !== 'legacy')
      .filter((set) => !tried.has(String(setArgs(set))));
    if (sets.length === 0 || round === maxRounds) return drops;
    for (const set of sets) {
      if (tried.has(String(setArgs(set)))) continue;
      tried.add(String(setArgs(set)));
      const text = await readSet(run, set, endsAt - performance.now());
      if (text !== null) listedSets.push(text);
    }
  }
}

/** Null if too slow. Refuses names with special characters: they become part of an nft command. */
async function readSet(run: Run, set: NamedSet, deadlineMs: number): Promise<string | null> {
  if (deadlineMs < 1 || ![set.table, set.name].every((name) => /^[a-zA-Z_][\w.-]*$/.test(name))) return null;
  try {
    return await run('nft', setArgs(set), { deadlineMs, maxBytes: maxSetBytes });
  } catch (error) {
    if (error instanceof CpnError) return null;
    throw error;
  }
}

/** Null if unreadable. Without legacy tables, starts no process and loads no kernel module. */
async function readLegacyTables(run: Run): Promise<(FilterTable | null)[]> {
  if (!hasLegacyTables(await readIfThere('/proc/net/ip_tables_names'))) return [];
  try {
    return parseLegacyTables(await run('iptables-legacy-save', []));
  } catch (error) {
    if (error instanceof CpnError) return [null];
    throw error;
  }
}
