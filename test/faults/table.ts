import { table } from '../../src/cli/output/output.ts';
import { catalogue, faultOf } from './catalogue.ts';
import type { Row } from './row.ts';

const header = ['fault', 'injected', 'detected after', 'repaired after', 'packets lost', 'survived'];

/** The rows of a run as a table; the summary in the last line counts a fault once. */
export function renderTable(rows: readonly Row[]): string {
  const injected = new Set(rows.map(({ fault }) => fault));
  const lost = new Set(rows.filter(({ survived }) => !survived).map(({ fault }) => fault));
  return [
    table(header, rows.map(cellsOf)),
    ...catalogue.flatMap(({ number, name, reason }) => (reason ? [`no row: ${number} ${name}: ${reason}`] : [])),
    `faults: ${injected.size} injected, ${injected.size - lost.size} survived`,
  ].join('\n');
}

/** The faults that have neither a row nor a reason for having none. */
export function findMissing(rows: readonly Row[]): string[] {
  return catalogue
    .filter(({ number, reason }) => reason === undefined && !rows.some(({ fault }) => fault === number))
    .map(({ number, name }) => `${number} ${name}`);
}

function cellsOf({ fault, how, detectedMs, repairedMs, lost, survived }: Row): string[] {
  const { name } = faultOf(fault);
  const cells = [`${String(fault).padStart(2)} ${name}`, how, seconds(detectedMs), seconds(repairedMs)];
  return [...cells, lost === null ? '–' : String(lost), survived ? 'yes' : 'NO'];
}

function seconds(milliseconds: number | null): string {
  return milliseconds === null ? '–' : `${(milliseconds / 1000).toFixed(1)} s`;
}
