import type { CellState } from './reach.ts';

/** The outline of a state in a box of 16 by 16. Each differs: colour is never the only sign. */
export const cellShapes: Readonly<Record<CellState, string>> = {
  // A square, a diamond, a circle, a cross, a bar and a dot.
  direct: 'M2 2H14V14H2Z',
  relayed: 'M8 1L15 8L8 15L1 8Z',
  stale: 'M8 2.5A5.5 5.5 0 1 1 8 13.5A5.5 5.5 0 1 1 8 2.5Z',
  down: 'M2 4.5L4.5 2L8 5.5L11.5 2L14 4.5L10.5 8L14 11.5L11.5 14L8 10.5L4.5 14L2 11.5L5.5 8Z',
  never: 'M2 6.5H14V9.5H2Z',
  unknown: 'M6.5 6.5H9.5V9.5H6.5Z',
};

/** What a cell of the matrix shows. */
export interface MatrixCell {
  /** The class of its state in the style. */
  readonly state: string;
  readonly shape: string;
  /** For screen readers. */
  readonly label: string;
  /** For the pointer. */
  readonly title?: string;
}

export function nameCell(from: string, to: string, state: string): string {
  return `${from} to ${to}: ${state}`;
}

/** The pixels of a cell: large enough for a finger. */
export const smallCell = 26;

/** The cells of a few peers are larger if the screen has room. */
export const sizeCells = (peers: number, width: number) => (peers <= 24 && width >= 600 ? 36 : smallCell);

export interface CellPosition {
  readonly row: number;
  readonly column: number;
}

/** The size of the matrix, and the rows of a page. */
export interface Extent {
  readonly rows: number;
  readonly columns: number;
  readonly page: number;
}

/** The cell that a key moves to, as in any grid; null for other keys. */
export function moveByKey(
  { row, column }: CellPosition,
  { rows, columns, page }: Extent,
  { key, ctrlKey }: { readonly key: string; readonly ctrlKey: boolean },
): CellPosition | null {
  const to = (nextRow: number, nextColumn: number): CellPosition => ({
    row: Math.max(0, Math.min(rows - 1, nextRow)),
    column: Math.max(0, Math.min(columns - 1, nextColumn)),
  });
  switch (key) {
    case 'ArrowUp':
      return to(row - 1, column);
    case 'ArrowDown':
      return to(row + 1, column);
    case 'ArrowLeft':
      return to(row, column - 1);
    case 'ArrowRight':
      return to(row, column + 1);
    case 'PageUp':
      return to(row - page, column);
    case 'PageDown':
      return to(row + page, column);
    case 'Home':
      return to(ctrlKey ? 0 : row, 0);
    case 'End':
      return to(ctrlKey ? rows - 1 : row, columns - 1);
    default:
      return null;
  }
}
