import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { findVisibleRows } from '../logic/page/visible-rows.ts';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** True for a column of buttons, whose title is only for screen readers. */
  readonly isActions?: boolean;
  /** The name of the order by this column. */
  readonly sort?: string;
  /** The fraction of the width of a long table. */
  readonly width?: number;
}

export interface Sorting {
  readonly by: string;
  readonly isDescending: boolean;
  readonly onSort: (by: string) => void;
}

export interface RowSelection {
  readonly selected: ReadonlySet<string | number>;
  readonly onChange: (selected: ReadonlySet<string | number>) => void;
}

interface TableProps<Row> {
  /** The accessible name of the table. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  readonly sorting?: Sorting;
  readonly selection?: RowSelection;
  /** The name of a row, for its checkbox. */
  readonly nameOf?: (row: Row) => string;
}

/** Above this number, only visible rows are rendered. */
const mostRows = 200;
/** The height of a row of a long table, the same as in the style. */
const rowHeight = 52;

/** A table. A long one renders only its visible rows and scrolls separately. */
export function Table<Row>(props: TableProps<Row>): JSX.Element {
  const { label, columns, rows, keyOf, sorting, selection, nameOf = keyOf } = props;
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
    // biome-ignore lint/a11y/noNoninteractiveTabindex: allows scrolling by keyboard.
    <section ref={place} class={isLong ? 'table long' : 'table'} aria-label={label} tabIndex={0}>
      <table aria-rowcount={rows.length + 1}>
        <caption class="hidden">{label}</caption>
        {isLong && <Widths columns={columns} isSelectable={selection !== undefined} />}
        <thead>
          <tr aria-rowindex={1}>
            {selection && <SelectAll keys={rows.map(keyOf)} {...selection} />}
            {columns.map((column) => (
              <Title key={column.title} {...column} sorting={sorting} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap rows={first} columns={columns.length + (selection ? 1 : 0)} />
          {rows.slice(first, end).map((row, at) => (
            <tr key={keyOf(row)} aria-rowindex={first + at + 2}>
              {selection && <Select id={keyOf(row)} name={nameOf(row)} {...selection} />}
              {columns.map(({ title, cell, isActions = false }, column) =>
                column === 0 ? (
                  <th key={title} scope="row">
                    {cell(row)}
                  </th>
                ) : (
                  <td key={title} class={isActions ? 'actions' : ''} data-title={isActions ? undefined : title}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
          <Gap rows={rows.length - end} columns={columns.length + (selection ? 1 : 0)} />
        </tbody>
      </table>
    </section>
  );
}

interface TitleProps extends Omit<Column<never>, 'cell'> {
  readonly sorting: Sorting | undefined;
}

function Title({ title, isActions = false, sort, sorting }: TitleProps): JSX.Element {
  if (sort === undefined || sorting === undefined) {
    return (
      <th scope="col" class={isActions ? 'actions' : ''}>
        <span class={isActions ? 'hidden' : ''}>{title}</span>
      </th>
    );
  }
  const isSorted = sorting.by === sort;
  const order = sorting.isDescending ? 'descending' : 'ascending';
  return (
    <th scope="col" aria-sort={isSorted ? order : 'none'}>
      <button type="button" class="sort" onClick={() => sorting.onSort(sort)}>
        {title}
        <span aria-hidden="true">{isSorted ? (sorting.isDescending ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  );
}

/** The columns of a long table share its width. */
function Widths({
  columns,
  isSelectable,
}: {
  readonly columns: readonly Pick<Column<never>, 'title' | 'width'>[];
  readonly isSelectable: boolean;
}): JSX.Element {
  const sum = columns.reduce((total, { width = 1 }) => total + width, 0);
  return (
    <colgroup>
      {isSelectable && <col class="select" />}
      {columns.map(({ title, width = 1 }) => (
        <col key={title} style={{ width: `${(100 * width) / sum}%` }} />
      ))}
    </colgroup>
  );
}

interface SelectAllProps extends RowSelection {
  readonly keys: readonly (string | number)[];
}

function SelectAll({ keys, selected, onChange }: SelectAllProps): JSX.Element {
  const count = keys.filter((key) => selected.has(key)).length;
  const isAll = count === keys.length && count > 0;
  return (
    <th scope="col" class="select">
      <input
        type="checkbox"
        aria-label="Select all that are shown"
        checked={isAll}
        indeterminate={count > 0 && !isAll}
        onChange={() => onChange(new Set(isAll ? [] : keys))}
      />
    </th>
  );
}

interface SelectProps extends RowSelection {
  readonly id: string | number;
  readonly name: string | number;
}

function Select({ id, name, selected, onChange }: SelectProps): JSX.Element {
  const change = () => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    onChange(next);
  };
  return (
    <td class="select">
      <input type="checkbox" aria-label={`Select ${name}`} checked={selected.has(id)} onChange={change} />
    </td>
  );
}

/** A placeholder for rows that are not rendered. */
function Gap({ rows, columns }: { readonly rows: number; readonly columns: number }): JSX.Element | null {
  if (rows === 0) return null;
  return (
    <tr class="gap">
      <td colSpan={columns} style={{ height: `${rows * rowHeight}px` }} />
    </tr>
  );
}
