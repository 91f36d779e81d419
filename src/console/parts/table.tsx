import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { findVisibleRows } from '../logic/page/visible-rows.ts';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** The column has buttons, and its title is for screen readers alone. */
  readonly isActions?: boolean;
}

interface TableProps<Row> {
  /** What the table lists. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
}

/** More rows than these are made only where they are seen. */
const mostRows = 200;
/** The height of a row of a long table, as in the style. */
const rowHeight = 44;

/** A table. Of a long one only the rows on the screen exist, and the table scrolls by itself. */
export function Table<Row>({ label, columns, rows, keyOf }: TableProps<Row>): JSX.Element {
  const place = useRef<HTMLElement>(null);
  const [view, setView] = useState({ scrolled: 0, height: 800 });
  const isLong = rows.length > mostRows;
  useEffect(() => {
    const { current } = place;
    if (!isLong || current === null) return;
    const update = () => setView({ scrolled: current.scrollTop, height: current.clientHeight });
    update();
    current.addEventListener('scroll', update, { passive: true });
    addEventListener('resize', update);
    return () => {
      current.removeEventListener('scroll', update);
      removeEventListener('resize', update);
    };
  }, [isLong]);
  const { first, end } = isLong
    ? findVisibleRows(rows.length, rowHeight, view.scrolled, view.height)
    : { first: 0, end: rows.length };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is scrolled by the keyboard too.
    <section ref={place} class={isLong ? 'table long' : 'table'} aria-label={label} tabIndex={0}>
      <table aria-rowcount={rows.length + 1}>
        <caption class="hidden">{label}</caption>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ title, isActions = false }) => (
              <th key={title} scope="col" class={isActions ? 'actions' : ''}>
                <span class={isActions ? 'hidden' : ''}>{title}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap rows={first} columns={columns.length} />
          {rows.slice(first, end).map((row, at) => (
            <tr key={keyOf(row)} aria-rowindex={first + at + 2}>
              {columns.map(({ title, cell, isActions = false }, column) =>
                column === 0 ? (
                  <th key={title} scope="row">
                    {cell(row)}
                  </th>
                ) : (
                  <td key={title} class={isActions ? 'actions' : ''}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
          <Gap rows={rows.length - end} columns={columns.length} />
        </tbody>
      </table>
    </section>
  );
}

/** The place of rows that are not made. */
function Gap({ rows, columns }: { readonly rows: number; readonly columns: number }): JSX.Element | null {
  if (rows === 0) return null;
  return (
    <tr class="gap">
      <td colSpan={columns} style={{ height: `${rows * rowHeight}px` }} />
    </tr>
  );
}
