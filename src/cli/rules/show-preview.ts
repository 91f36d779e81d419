import type { RulesPreview } from '../../api/admin-service.ts';
import { printable } from '../../core/errors/index.ts';
import { listNames } from '../../core/util/list-names.ts';
import { type Cell, green, red, table } from '../output/output.ts';
import { describePort, describeTraffic } from './show-rules.ts';

/** Rows that a terminal can show; `--json` has up to 1,000 of each kind. */
const mostRows = 40;

/** Who gains and who loses what, as text. */
export function describeChanges({ gained, lost, gained_count, lost_count, complete }: RulesPreview): string {
  if (gained_count + lost_count === 0 && complete) return 'No connection is gained or lost.';
  return [
    ...describeSide('Gained', '+', green, gained, gained_count),
    ...describeSide('Lost', '-', red, lost, lost_count),
    ...(complete ? [] : ['There may be more: the rules name too many peers one by one to compare all pairs.']),
  ].join('\n');
}

function describeSide(
  title: string,
  sign: string,
  paint: (text: string) => string,
  changes: RulesPreview['gained'],
  count: number,
): string[] {
  if (count === 0) return [];
  const shown = fold(changes).slice(0, mostRows);
  const rows = shown.map(({ from, to, traffic }): Cell[] => [[sign, paint], list(from), '→', list(to), traffic]);
  const more = count - shown.reduce((sum, row) => sum + row.count, 0);
  return [
    `${title} (${count}):`,
    // The empty header row is left out.
    ...table(['', '', '', '', ''], rows)
      .split('\n')
      .slice(1)
      .map((line) => `  ${line}`),
    ...(more > 0 ? [`  and ${more} more; --json lists them`] : []),
  ];
}

/** Several senders and destinations with the same changes. */
interface Row {
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly traffic: string;
  /** How many changes of the preview it stands for. */
  readonly count: number;
}

/** Joins the changes of each pair, then senders and then destinations with the same changes. */
function fold(changes: RulesPreview['gained']): Row[] {
  const single = changes.map(({ from, to, ...traffic }): Row => {
    return { from: [from], to: [to], traffic: describeChange({ from, to, ...traffic }), count: 1 };
  });
  const join = (rows: readonly Row[], key: (row: Row) => unknown, merge: (same: readonly Row[]) => Partial<Row>) =>
    [...Map.groupBy(rows, (row) => JSON.stringify(key(row))).values()].flatMap((same) => {
      const [first] = same;
      return first ? { ...first, ...merge(same), count: same.reduce((sum, { count }) => sum + count, 0) } : [];
    });
  const pairs = join(
    single,
    ({ from, to }) => [from, to],
    (same) => ({ traffic: same.map(({ traffic }) => traffic).join('; ') }),
  );
  const bySender = join(
    pairs,
    ({ to, traffic }) => [to, traffic],
    (same) => ({ from: same.flatMap(({ from }) => from) }),
  );
  return join(
    bySender,
    ({ from, traffic }) => [from, traffic],
    (same) => ({ to: same.flatMap(({ to }) => to) }),
  );
}

/** Echo requests between peers are always allowed: only the other messages of ICMP change. */
function describeChange({ from, to, ...traffic }: RulesPreview['gained'][number]): string {
  const isBetweenPeers = [from, to].every((selector) => selector.startsWith('peer:'));
  return traffic.protocol === 'icmp' && isBetweenPeers ? 'icmp except echo' : describeTraffic(traffic);
}

const mostNamed = 4;

function list(selectors: readonly string[]): string {
  const more = selectors.length - mostNamed;
  return `${selectors.slice(0, mostNamed).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** The tests that fail, and how many there are. */
export function describeTests(tests: RulesPreview['tests']): string {
  const failed = tests.filter(({ passed }) => !passed);
  if (failed.length === 0)
    return `${green('passed')}: ${tests.length === 1 ? 'the test' : `all ${tests.length} tests`}`;
  const lines = failed.map(
    ({ from, to, protocol, port, expect, why }) =>
      `  ${printable(from)} → ${printable(to)}, ${describePort(protocol, port)}: expected ${expect}; ${printable(why)}`,
  );
  return [`${red('failed')}: ${failed.length} of ${tests.length} tests`, ...lines].join('\n');
}

/** Probable mistakes, what is not restricted, and what is refused although a rule allows it. */
export function describeLimits({ enforcement, refused, warnings }: RulesPreview, isRequired: boolean): string[] {
  const free = enforcement.filter(({ by }) => by === 'nothing').map(({ peer }) => printable(peer.name));
  const reach = isRequired
    ? 'no peer reaches them, because enforcement is required'
    : 'every peer still reaches them; --require-enforcement makes them no destination';
  const others = refused.slice(mostRows).length;
  return [
    ...warnings.map(printable),
    ...(free.length === 0 ? [] : [`nothing enforces the rules at ${listNames(free)}; ${reach}`]),
    ...refused
      .slice(0, mostRows)
      .map(
        ({ from, to, why }) =>
          `${printable(from)} → ${printable(to)} is refused, although a rule allows it: ${printable(why)}`,
      ),
    ...(others === 0 ? [] : [`${others} more connections are refused, although a rule allows them; --json lists them`]),
  ];
}
