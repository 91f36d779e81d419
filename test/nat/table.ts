import type { Attempt } from './attempt.ts';

const heading = ['first', 'second', 'start', 'expected', 'reached', 'crossed', 'seconds', 'lost'];

/** The attempts as a table. */
export function renderAttempts(attempts: readonly Attempt[]): string {
  const rows = attempts.map(({ pair, isExpected, isReached, isCrossed, seconds, lost }) => [
    pair.first.site.host.name,
    pair.second.site.host.name,
    pair.by ?? (pair.isLate ? 'second late' : 'together'),
    ...[isExpected, isReached, isCrossed].map((is) => (is ? 'yes' : 'no')),
    seconds?.toFixed(1) ?? '',
    lost?.toString() ?? '',
  ]);
  const widths = heading.map((_, column) => Math.max(...[heading, ...rows].map((row) => row[column]?.length ?? 0)));
  return [heading, ...rows]
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
