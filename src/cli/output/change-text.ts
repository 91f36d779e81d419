import type { PassReport } from '../../app/networks/pass-report.ts';
import { printable } from '../../core/errors/index.ts';
import type { Change, ChangeValue } from '../../core/reconcile/change.ts';
import { dim, green, red, yellow } from './output.ts';

/** The maximum number of lines below one change. */
const maxLines = 12;

/** One line: sign, subject, old and new value, reason. `names` has the peers by public key. */
export function describeChange(change: Change, names: ReadonlyMap<string, string> = new Map()): string {
  const { action, kind, target, reason } = change;
  const sign = { add: green('+'), remove: red('-'), update: yellow('~') }[action];
  const name = kind === 'peer' ? names.get(target) : undefined;
  // Our table of packet rules has the name of its interface.
  const object = kind === 'firewall' ? target.replace(/^inet cpn_/, '') : target;
  const subject = printable(name === undefined ? object : `${name} ${object}`);
  const values = printable(describeValues(change));
  return `  ${sign} ${kind} ${subject}  ${values === '' ? '' : `${values}  `}${dim(`(${printable(reason)})`)}`;
}

/** The change, and below it the differing lines of a file or packet rules. */
export function describeWithLines(change: Change, explanation: Pick<PassReport, 'names' | 'fileDiff'>): string {
  const lines = linesOf(change, explanation).map((line) => `      ${printable(line)}`);
  const more = lines.length > maxLines ? [dim(`      and ${lines.length - maxLines} more lines`)] : [];
  return [describeChange(change, explanation.names), ...lines.slice(0, maxLines), ...more].join('\n');
}

function linesOf(
  { kind, before, after }: Change,
  { names, fileDiff }: Pick<PassReport, 'names' | 'fileDiff'>,
): string[] {
  if (kind === 'hosts') return diffLines(listOf(before), listOf(after));
  if (kind === 'firewall' && isListed(before, after)) return diffRules(listOf(before), listOf(after));
  if (kind !== 'file') return [];
  return fileDiff.flatMap(({ peer, removed, added }) => [
    peer === null ? '[Interface]' : `[Peer] ${names.get(peer) ?? peer}`,
    ...diffLines(removed, added),
  ]);
}

function diffLines(removed: readonly string[], added: readonly string[]): string[] {
  return [...removed.map((line) => `- ${line}`), ...added.map((line) => `+ ${line}`)];
}

/** A rule is `CHAIN cpn NAME HASH`. If only its hash differs, the rule has other values. */
function diffRules(before: readonly string[], after: readonly string[]): string[] {
  const [removed, added] = [
    before.filter((rule) => !after.includes(rule)),
    after.filter((rule) => !before.includes(rule)),
  ];
  const [old, wanted] = [new Set(removed.map(nameRule)), new Set(added.map(nameRule))];
  return [
    ...[...old].filter((rule) => !wanted.has(rule)).map((rule) => `- ${rule}`),
    ...[...wanted].map((rule) => `${old.has(rule) ? '~' : '+'} ${rule}`),
  ];
}

function nameRule(rule: string): string {
  const [, name] = /^\S+ cpn (\S+) \S+$/.exec(rule) ?? [];
  return name?.replaceAll('-', ' ') ?? rule;
}

/** Lists of lines and rules are below the change. */
function describeValues({ kind, before, after }: Change): string {
  if (kind === 'hosts' || kind === 'file' || (kind === 'firewall' && isListed(before, after))) return '';
  return [before, after]
    .filter((value) => value !== null)
    .map(describeValue)
    .join(' → ');
}

function describeValue(value: ChangeValue): string {
  if (value === null || typeof value !== 'object') return String(value);
  if (isList(value)) return value.join(', ');
  return Object.entries(value)
    .filter(([, field]) => field !== null)
    .map(([name, field]) => `${name} ${describeValue(field)}`)
    .join(' ');
}

/** The change of a firewall program on the host has a text instead of a list of rules. */
function isListed(...values: readonly ChangeValue[]): boolean {
  return values.some((value) => Array.isArray(value));
}

function listOf(value: ChangeValue): readonly string[] {
  return typeof value === 'object' && value !== null && isList(value) ? value : [];
}

function isList(value: object): value is readonly string[] {
  return Array.isArray(value);
}
