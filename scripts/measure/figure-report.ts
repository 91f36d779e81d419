import { formatFigure } from './comparison.ts';
import { allowedLoss, type Figure, type FigureChange, isLost, nameOf } from './figures.ts';
import { recordedPath } from './recorded.ts';

/** A table of rows: the figure recorded last, the figure now, and the change. */
export function formatTable(changes: readonly FigureChange[]): string {
  return ['| row | recorded | now | change |\n| --- | --- | --- | --- |\n', ...changes.map(formatRow)].join('');
}

function formatRow(change: FigureChange): string {
  const { recorded, now } = change;
  const row = recorded ?? now;
  const figures = [recorded, now].map((each) => (each === null ? '–' : formatFigure(each.figure)));
  return `| ${[row === null ? '' : nameOf(row), ...figures, formatChange(change)].join(' | ')} |\n`;
}

function formatChange({ change }: FigureChange): string {
  return change === null ? '–' : `${change < 0 ? '−' : '+'}${Math.abs(change * 100).toFixed(0)} %`;
}

/** What fails the check and what to do about it; empty where nothing does. */
export function describeFailures(changes: readonly FigureChange[]): string {
  const lost = changes.filter(isLost).map(describeLoss);
  const added = changes.filter(({ recorded }) => recorded === null).map(({ now }) => describeRow(now));
  const gone = changes.filter(({ now }) => now === null).map(({ recorded }) => describeRow(recorded));
  const part = (title: string, lines: readonly string[]) => (lines.length === 0 ? '' : `${title}:\n${lines.join('')}`);
  return [
    part(`lost more than ${allowedLoss} % in both attempts; mend it, or record it and say why in the commit`, lost),
    part('measured, but not recorded; add it with scripts/bench record SUBJECT', added),
    part(`recorded, but not measured; delete it from ${recordedPath} if its measurement was removed`, gone),
  ].join('');
}

function describeRow(row: Figure | null): string {
  return row === null ? '' : `  ${nameOf(row)}\n`;
}

/** A row that both sides have, with the figures of both. */
export function describeLoss(change: FigureChange): string {
  const { recorded, now } = change;
  if (recorded === null || now === null) return '';
  const from = `recorded at ${recorded.commit} on ${recorded.date}`;
  return `  ${nameOf(recorded)}: ${describeFigure(recorded)}, now ${describeFigure(now)}, ${formatChange(change)}; ${from}\n`;
}

function describeFigure({ figure, measured }: Figure): string {
  return `${formatFigure(figure)} (${measured})`;
}
