import { CpnError } from '../../../core/errors/index.ts';
import type { NamedSet } from '../../../core/forward/foreign/chain.ts';
import { type ForeignDrops, findForeignDrops, type PacketPaths } from '../../../core/forward/foreign/foreign-drops.ts';
import { parseOutput } from '../../process/command-error.ts';
import type { OutputCache } from '../../process/output-cache.ts';
import type { Run } from '../../process/run.ts';
import { parseFilterTables, rulesetArgs, setArgs } from './filter-tables.ts';

/** For all sets of one check together. `nft` takes a second for 100,000 elements. */
const readingMs = 1000;
/** Bytes of one set: about 20,000 prefixes. */
const maxSetBytes = 1024 * 1024;
/** A set that was read may decide that packets come to a rule with another one. */
const maxRounds = 4;

/**
 * {@link Host.foreignDrops}. It reads the rules without the elements of named sets, and then those sets on which a verdict depends. A set that
 * is too large stays unread.
 */
export async function readForeignDrops(
  run: Run,
  outputCache: OutputCache,
  link: string,
  ways: PacketPaths,
): Promise<ForeignDrops> {
  const listing = await run('nft', rulesetArgs, { outputCache });
  const listedSets: string[] = [];
  const tried = new Set<string>();
  const endsAt = performance.now() + readingMs;
  for (let round = 1; ; round += 1) {
    const tables = parseOutput('nft', listing, (text) => parseFilterTables(text, listedSets));
    const drops = findForeignDrops(tables, link, ways);
    const { forward = [], inbound = [] } = drops.unread ?? {};
    const sets = [...forward, ...inbound].filter((set) => !tried.has(String(setArgs(set))));
    if (sets.length === 0 || round === maxRounds) return drops;
    for (const set of sets) {
      if (tried.has(String(setArgs(set)))) continue;
      tried.add(String(setArgs(set)));
      const text = await readSet(run, set, endsAt - performance.now());
      if (text !== null) listedSets.push(text);
    }
  }
}

/** Null where it cannot be read in time; its name is part of a command of nft. */
async function readSet(run: Run, set: NamedSet, deadlineMs: number): Promise<string | null> {
  if (deadlineMs < 1 || ![set.table, set.name].every((name) => /^[a-zA-Z_][\w.-]*$/.test(name))) return null;
  try {
    return await run('nft', setArgs(set), { deadlineMs, maxBytes: maxSetBytes });
  } catch (error) {
    if (error instanceof CpnError) return null;
    throw error;
  }
}
