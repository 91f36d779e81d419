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
