// biome-ignore-all lint/a11y/useSemanticElements: SVG has no tables.

import type { JSX } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { Peer } from '../../../contract/peer.ts';
import { type CellPosition, type MatrixCell, moveByKey, sizeCells, smallCell } from '../../logic/matrix/cells.ts';
import type { Reach } from '../../logic/matrix/reach.ts';
import { linkTo } from '../../logic/page/route.ts';
import { findVisibleRows, type VisibleRows } from '../../logic/page/visible-rows.ts';
import { peerTypes } from '../../logic/peers/peer-text.ts';

/** Cells that are rendered beyond each edge of the screen. */
const margin = 6;

export interface MatrixProps {
  readonly network: number;
  readonly reach: Reach;
  readonly rows: readonly Peer[];
  readonly columns: readonly Peer[];
  /** The rows or columns without a filter. A filter does not resize the cells. */
  readonly total: number;
  readonly cellOf: (from: Peer, to: Peer) => MatrixCell;
  readonly onOpen: (from: Peer, to: Peer) => void;
}

interface MatrixView {
  readonly rows: VisibleRows;
  readonly columns: VisibleRows;
}

/** Rows send, columns receive. A keyboard grid that renders only the visible cells. */
export function Matrix({ network, reach, rows, columns, total, cellOf, onOpen }: MatrixProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const cells = useRef<HTMLDivElement>(null);
  const id = useId();
  const size = sizeCells(total, innerWidth);
  const [view, setView] = useState<MatrixView>(() => findView(size, rows.length, columns.length, 0, 0, 1200, 800));
  // By ids, so that an inserted row moves the position with its peers.
  const [at, setAt] = useState<{ readonly from: number; readonly to: number } | null>(null);
  const active = at && findPlace(rows, columns, at);

  useEffect(() => {
    const { current } = place;
    if (current === null) return;
    const update = () => {
      const { scrollLeft, scrollTop, clientWidth, clientHeight } = current;
      const seen = findView(size, rows.length, columns.length, scrollTop, scrollLeft, clientWidth, clientHeight);
      setView((before) => (isSameView(before, seen) ? before : seen));
    };
    update();
    const resized = new ResizeObserver(update);
    resized.observe(current);
    current.addEventListener('scroll', update, { passive: true });
    return () => {
      resized.disconnect();
      current.removeEventListener('scroll', update);
    };
  }, [size, rows.length, columns.length]);

  const select = ({ row, column }: CellPosition) => {
    const [from, to] = [rows[row], columns[column]];
    if (from === undefined || to === undefined) return;
    setAt({ from: from.id, to: to.id });
    reveal(place.current, cells.current, size, { row, column });
  };
  const open = ({ row, column }: CellPosition) => {
    const [from, to] = [rows[row], columns[column]];
    if (from === undefined || to === undefined) return;
    setAt({ from: from.id, to: to.id });
    onOpen(from, to);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const from = active ?? { row: 0, column: 0 };
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      open(from);
      return;
    }
    const page = Math.max(1, Math.floor((place.current?.clientHeight ?? 0) / size) - 6);
    const next = moveByKey(from, { rows: rows.length, columns: columns.length, page }, event);
    if (next === null) return;
    event.preventDefault();
    select(next);
  };
  const onClick = (event: MouseEvent) => {
    const box = cells.current?.getBoundingClientRect();
    if (box === undefined || !cells.current?.contains(event.target as Node)) return;
    open({ row: Math.floor((event.clientY - box.top) / size), column: Math.floor((event.clientX - box.left) / size) });
  };
  const shownRows = rows.slice(view.rows.first, view.rows.end);
  const shownColumns = columns.slice(view.columns.first, view.columns.end);
  const [left, top] = [view.columns.first * size, view.rows.first * size];
  return (
    <div
      ref={place}
      class="matrix"
      style={{ '--cell': `${size}px` }}
      role="grid"
      tabIndex={0}
      aria-label="Who reaches whom"
      aria-readonly
      aria-rowcount={rows.length}
      aria-colcount={columns.length}
      aria-activedescendant={active ? `${id}-${at?.from}-${at?.to}` : undefined}
      onKeyDown={onKeyDown}
      onClick={onClick}
      onFocus={() => at === null && select({ row: view.rows.first, column: view.columns.first })}
    >
      <div class="matrix-corner" aria-hidden="true">
        from ↓ to →
      </div>
      <div class="matrix-top" aria-hidden="true" style={{ width: `${columns.length * size}px` }}>
        {shownColumns.map((peer, index) => (
          <a
            key={peer.id}
            class={nameClass(peer, columns[view.columns.first + index - 1])}
            tabIndex={-1}
            href={linkTo({ page: 'peer', network, peer: peer.id })}
            title={peer.name}
            style={{ left: `${left + index * size}px` }}
          >
            {markOf(reach, peer)}
            {peer.name}
          </a>
        ))}
      </div>
      <div class="matrix-left" aria-hidden="true" style={{ height: `${rows.length * size}px` }}>
        {shownRows.map((peer, index) => (
          <a
            key={peer.id}
            class={nameClass(peer, rows[view.rows.first + index - 1])}
            tabIndex={-1}
            href={linkTo({ page: 'peer', network, peer: peer.id })}
            title={peer.name}
            style={{ top: `${top + index * size}px` }}
          >
            {markOf(reach, peer)}
            {peer.name}
            {peer.peer_type !== rows[view.rows.first + index - 1]?.peer_type && (
              <span class="type">{peerTypes[peer.peer_type]}</span>
            )}
          </a>
        ))}
      </div>
      <div
        ref={cells}
        class="matrix-cells"
        role="presentation"
        style={{ width: `${columns.length * size}px`, height: `${rows.length * size}px` }}
      >
        <svg
          role="presentation"
          width={shownColumns.length * size}
          height={shownRows.length * size}
          style={{ left: `${left}px`, top: `${top}px` }}
        >
          {shownRows.map((from, row) => (
            <Row
              key={from.id}
              {...{ id, reach, from, columns: shownColumns, row, size, cellOf }}
              rowIndex={view.rows.first + row}
              firstColumn={view.columns.first}
              active={at?.from === from.id ? at.to : null}
            />
          ))}
          {active && (
            <rect
              class="cell-focus"
              x={active.column * size - left + 1.5}
              y={active.row * size - top + 1.5}
              width={size - 3}
              height={size - 3}
            />
          )}
          <Separators rows={shownRows} columns={shownColumns} size={size} />
        </svg>
      </div>
    </div>
  );
}

interface RowProps {
  readonly id: string;
  readonly reach: Reach;
  readonly from: Peer;
  readonly columns: readonly Peer[];
  /** The index among the rendered rows, and among all. */
  readonly row: number;
  readonly rowIndex: number;
  readonly firstColumn: number;
  readonly active: number | null;
  readonly size: number;
  readonly cellOf: MatrixProps['cellOf'];
}

function Row({ id, reach, from, columns, row, rowIndex, firstColumn, active, size, cellOf }: RowProps): JSX.Element {
  const scale = size / smallCell;
  const inset = (size - 16 * scale) / 2;
  const y = row * size + inset;
  return (
    <g role="row" aria-rowindex={rowIndex + 1}>
      {columns.map((to, column) => {
        const x = column * size + inset;
        const { state, shape, label, title } = to.id === from.id ? cellOfSelf(reach, from) : cellOf(from, to);
        return (
          <path
            key={to.id}
            id={`${id}-${from.id}-${to.id}`}
            role="gridcell"
            aria-colindex={firstColumn + column + 1}
            aria-label={label}
            class={active === to.id ? `cell ${state} active` : `cell ${state}`}
            transform={`translate(${x} ${y}) scale(${scale})`}
            d={shape}
          >
            {title !== undefined && <title>{title}</title>}
          </path>
        );
      })}
    </g>
  );
}

function cellOfSelf(reach: Reach, { id, name }: Peer): MatrixCell {
  const own = reach.health.get(id)?.state ?? 'unknown';
  return { state: 'itself', shape: 'M0 0L16 16', label: `${name} itself: ${own}` };
}

function Separators({ rows, columns, size }: Pick<MatrixProps, 'rows' | 'columns'> & Pick<RowProps, 'size'>) {
  const [width, height] = [columns.length * size, rows.length * size];
  const breaks = (peers: readonly Peer[]) =>
    peers.flatMap((peer, at) => (isFirstOfType(peer, peers[at - 1]) ? at : []));
  const lines = [
    ...breaks(rows).map((row) => `M0 ${row * size}H${width}`),
    ...breaks(columns).map((column) => `M${column * size} 0V${height}`),
  ];
  return <path class="separators" d={lines.join('')} />;
}

function isFirstOfType(peer: Peer, before: Peer | undefined): boolean {
  return before !== undefined && before.peer_type !== peer.peer_type;
}

const nameClass = (peer: Peer, before: Peer | undefined) => (isFirstOfType(peer, before) ? 'first' : '');

function markOf(reach: Reach, { id }: Peer): string {
  return reach.health.get(id)?.state === 'offline' ? '✕ ' : '';
}

function findView(
  size: number,
  rows: number,
  columns: number,
  top: number,
  left: number,
  width: number,
  height: number,
): MatrixView {
  return {
    rows: findVisibleRows(rows, size, top, height, margin),
    columns: findVisibleRows(columns, size, left, width, margin),
  };
}

function isSameView(one: MatrixView, other: MatrixView): boolean {
  const is = (a: VisibleRows, b: VisibleRows) => a.first === b.first && a.end === b.end;
  return is(one.rows, other.rows) && is(one.columns, other.columns);
}

function findPlace(
  rows: readonly Peer[],
  columns: readonly Peer[],
  { from, to }: { readonly from: number; readonly to: number },
): CellPosition | null {
  const [row, column] = [rows.findIndex(({ id }) => id === from), columns.findIndex(({ id }) => id === to)];
  return row < 0 || column < 0 ? null : { row, column };
}

/** Scrolls until a cell is visible next to the names. */
function reveal(
  place: HTMLElement | null,
  cells: HTMLElement | null,
  size: number,
  { row, column }: CellPosition,
): void {
  if (place === null || cells === null) return;
  const [left, top] = [column * size, row * size];
  const [width, height] = [place.clientWidth - cells.offsetLeft, place.clientHeight - cells.offsetTop];
  const into = (scrolled: number, start: number, length: number) =>
    Math.min(start, Math.max(scrolled, start + size - length));
  place.scrollTo({
    left: into(place.scrollLeft, left, width),
    top: into(place.scrollTop, top, height),
    behavior: 'instant',
  });
}
