export interface VisibleRows {
  readonly first: number;
  /** The row after the last one. */
  readonly end: number;
}

const usualAround = 15;

/** The rows to render, if all rows have the same height. */
export function findVisibleRows(
  count: number,
  rowHeight: number,
  scrolled: number,
  height: number,
  margin = usualAround,
): VisibleRows {
  const first = Math.max(0, Math.min(count, Math.floor(scrolled / rowHeight)) - margin);
  const end = Math.min(count, Math.ceil((scrolled + height) / rowHeight) + margin);
  return { first, end: Math.max(first, end) };
}
