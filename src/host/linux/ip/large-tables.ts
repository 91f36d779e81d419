import { routeProtocol, tunnelTable } from '../../../core/host-state/marks.ts';
import { type Address, familyOf, maskPrefix, type Prefix } from '../../../core/net/cidr.ts';
import { isRouteTable } from '../../../core/routing/route-table.ts';
import { isTooLong, parseOutput, stderrOf } from '../../process/command-error.ts';
import { OutputCache } from '../../process/output-cache.ts';
import type { Run } from '../../process/run.ts';
import { asList, invalidIpOutput, isEntry, type JsonEntry } from './json-entry.ts';
import {
  defaultProbes,
  isRefused,
  type LookupResult,
  mostAtOnce,
  probesOf,
  readAnswers,
  renderLookup,
} from './route-lookups.ts';

/** Matches the errors for a missing address family, table or interface. */
const isAbsent = (error: unknown) => /not supported|FIB table does not exist|Cannot find device/.test(stderrOf(error));

/**
 * Routes that the kernel filters, which walks all tables but prints little. Within a batch, `ip`
 * filters in user space, so each of these queries is a process.
 */
export interface ListedRoutes {
  readonly four: readonly JsonEntry[];
  readonly six: readonly JsonEntry[];
  /** False if the main table is too large. Then only routes of some protocols are here. */
  readonly isWhole: boolean;
}

/** Protocols of administrators, DHCP clients and router advertisements (numbers of rtnetlink.h). */
const listedProtocols = ['3', '4', '9', '16'];
const kernelsProtocol = '2';

/** On a host with large tables, lists the routes into `link`, and those of no routing daemon. */
export async function listRoutes(run: Run, link: string): Promise<ListedRoutes> {
  const [four, six] = await Promise.all([listFamily(run, '-4', link), listFamily(run, '-6', link)]);
  return { four: four.entries, six: six.entries, isWhole: four.isWhole && six.isWhole };
}

async function listFamily(run: Run, family: '-4' | '-6', link: string) {
  const main = await show(run, family, ['table', 'main'], { table: '254' });
  const ofProtocol = (protocol: string, table: string) =>
    show(run, family, ['table', table, 'proto', protocol, 'type', 'unicast'], {
      protocol,
      ...(table === 'main' && { table: '254' }),
    });
  const selected = main === null ? listedProtocols : [];
  const parts = [
    await show(run, family, ['table', 'all', 'dev', link, 'type', 'unicast'], { dev: link }, false),
    await ofProtocol(kernelsProtocol, 'all'),
  ];
  for (const protocol of selected) parts.push(await ofProtocol(protocol, 'main'));
  return { entries: [...(main ?? []), ...parts.flatMap((part) => part ?? [])], isWhole: main !== null };
}

/** Lists the routes of one of our own tables. */
async function listTable(run: Run, table: string): Promise<readonly JsonEntry[]> {
  return (await show(run, '-4', ['table', table], { table }, false)) ?? [];
}

/**
 * Runs `ip route show`. Returns null if it prints too much.
 *
 * @param selected the fields that the selector fixes, which `ip` therefore leaves out
 */
async function show(
  run: Run,
  family: '-4' | '-6',
  selector: readonly string[],
  selected: JsonEntry,
  isBounded = true,
): Promise<readonly JsonEntry[] | null> {
  const args = ['-json', '-details', '-Numeric', family, 'route', 'show', ...selector];
  try {
    const text = await run('ip', args, isBounded ? { maxBytes: mostAtOnce } : { outputCache: new OutputCache() });
    return parseOutput('ip', text, parseEntries).map((entry) => complete(entry, selected, family));
  } catch (error) {
    if (isBounded && isTooLong(error)) return null;
    if (isAbsent(error)) return [];
    throw error;
  }
}

function complete(entry: JsonEntry, selected: JsonEntry, family: '-4' | '-6'): JsonEntry {
  const { dev, ...others } = selected;
  const whole = family === '-4' ? '0.0.0.0/0' : '::/0';
  return {
    ...(dev !== undefined && !('nexthops' in entry) && { dev }),
    ...others,
    ...entry,
    ...(entry.dst === 'default' && { dst: whole }),
  };
}

function parseEntries(text: string): readonly JsonEntry[] {
  if (text.trim() === '') return [];
  try {
    return asList(JSON.parse(text.replace(/\p{Cc}/gu, ' '))).filter(isEntry);
  } catch {
    throw invalidIpOutput('is not a list in JSON');
  }
}

/** An observation of a host with large tables, in the format of {@link showInput}'s output. */
export interface LargeView {
  readonly text: string;
  /** Prefixes in `asked` to which the kernel refuses packets. */
  readonly refused: readonly Prefix[];
  /** The replies to the further lines of the batch. */
  readonly answers: readonly LookupResult[];
}

/**
 * Reads all links, addresses and rules, and our own tables. Of all other routes, reads those that
 * the kernel uses for the prefixes in `asked`, and adds those in `listing`.
 *
 * @param more further lines of the batch
 */
export async function readLarge(
  run: Run,
  { asked, more }: { readonly asked: readonly Prefix[]; readonly more: readonly string[] },
  { four, six }: ListedRoutes,
  outputCache: OutputCache,
): Promise<LargeView> {
  const probes = asked.flatMap((prefix) => probesOf(prefix).map((address) => ({ address, prefix })));
  const whole = defaultProbes.map((address) => ({ address, prefix: maskPrefix('0.0.0.0/0') }));
  const lookups = [...whole, ...probes];
  const lines = ['address show', 'rule show', ...lookups.map(({ address }) => renderLookup(address)), ...more];
  let stderr = '';
  const stdout = await run('ip', ['-json', '-details', '-Numeric', '-force', '-batch', '-'], {
    input: `${lines.join('\n')}\n`,
    allowExitCodes: [1],
    outputCache,
    onErrors: (text) => {
      stderr = text;
    },
  });
  const { links, rules, answers, ruleEntries } = parseOutput('ip', stdout, () => split(lines, stdout, stderr));
  const own = await readOwnTables(run, ruleEntries, four);
  const found = parseOutput('ip', stdout, () =>
    lookups.flatMap(({ address }, index) => readLookup(address, answers[index])),
  );
  const merge = (family: 4 | 6, listed: readonly JsonEntry[]) =>
    JSON.stringify(distinct([...found.filter((each) => each.family === family).map((each) => each.entry), ...listed]));
  const others = four.filter(({ table }) => !own.tables.includes(String(table)));
  const text = [links, merge(4, [...others, ...own.entries]), merge(6, six), rules, ''].join('\n');
  const refused = lookups.flatMap(({ prefix }, index) => {
    const answer = answers[index];
    return answer && isRefused(answer) ? [prefix] : [];
  });
  return { text, refused: [...new Set(refused)], answers: answers.slice(lookups.length) };
}

function split(lines: readonly string[], stdout: string, stderr: string) {
  const [links, rules, ...answers] = readAnswers(lines, stdout, stderr);
  if (links === undefined || rules === undefined || !('json' in links) || !('json' in rules))
    throw invalidIpOutput('has no links or no rules');
  return { links: links.json, rules: rules.json, answers, ruleEntries: parseEntries(rules.json) };
}

/** The tables that our rules use, and those that had routes of ours in the listing. */
async function readOwnTables(run: Run, rules: readonly JsonEntry[], listed: readonly JsonEntry[]) {
  const named = [...rules.filter(({ protocol }) => String(protocol) === routeProtocol), ...listed];
  const isOwn = (table: string) => table === tunnelTable || isRouteTable(table);
  const tables = [...new Set(named.map(({ table }) => String(table)))].filter(isOwn);
  const entries = await Promise.all(tables.map((table) => listTable(run, table)));
  return { tables, entries: entries.flat() };
}

function readLookup(address: Address, answer: LookupResult | undefined): { family: 4 | 6; entry: JsonEntry }[] {
  if (answer === undefined || 'refusal' in answer) return [];
  const family = familyOf(address);
  const [entry] = parseEntries(answer.json).map((each) => complete(each, {}, family === 4 ? '-4' : '-6'));
  return entry === undefined ? [] : [{ family, entry }];
}

/** Removes duplicates: a route may be in the listing and in several lookups. */
function distinct(entries: readonly JsonEntry[]): readonly JsonEntry[] {
  const keyOf = ({ dst, table = '254', metric, tos, protocol, dev, gateway, via, type = '1', nexthops }: JsonEntry) =>
    JSON.stringify([
      String(dst).replace(/\/(?:32|128)$/, ''),
      String(table),
      metric,
      tos,
      String(protocol),
      dev,
      gateway,
      via,
      String(type),
      nexthops,
    ]);
  return [...new Map(entries.map((entry) => [keyOf(entry), entry])).values()];
}
