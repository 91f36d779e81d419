import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Network } from '../../contract/network.ts';
import type { Peer, PeerType } from '../../contract/peer.ts';
import { listNames } from '../../core/util/list-names.ts';
import { filterMatrix, isFiltered, type MatrixFilter, noFilter } from '../logic/matrix/filter-matrix.ts';
import { type CellState, cellStates, groupOrder, type Reach, sumCounts, toGroup } from '../logic/matrix/reach.ts';
import { peerTypes } from '../logic/peers/peer-text.ts';
import { Matrix } from '../parts/charts/matrix.tsx';
import { Field } from '../parts/forms/form.tsx';
import { State } from '../parts/state.tsx';
import { Table } from '../parts/table.tsx';
import { Why } from '../parts/why.tsx';

interface ReachProps {
  readonly network: Network;
  readonly reach: Reach;
}

/** With more peers than this, a summary by type is shown first. */
const fewPeers = 30;

export function NetworkReach({ network, reach }: ReachProps): JSX.Element {
  const [filter, setFilter] = useState<MatrixFilter>(noFilter);
  const [opened, setOpened] = useState<readonly [number, number] | null>(null);
  const { rows, columns } = useMemo(() => filterMatrix(reach, filter), [reach, filter]);
  const change = (fields: Partial<MatrixFilter>) => setFilter((before) => ({ ...before, ...fields }));
  const [from, to] = opened?.map((id) => reach.byId.get(id)) ?? [];
  return (
    <>
      <h2>Who reaches whom</h2>
      {reach.rows.length === 0 ? (
        <div class="empty">
          <p>
            No host reports yet whom it reaches. The daemon reports: on a host, type{' '}
            <code>sudo systemctl enable --now cpn</code>
          </p>
        </div>
      ) : (
        <>
          <Legend reach={reach} state={filter.state} onChange={(state) => change({ state })} />
          {reach.rows.length > fewPeers && <Groups reach={reach} filter={filter} onChange={change} />}
          <div class="search">
            <Field
              label="From"
              name="from"
              type="search"
              value={filter.from}
              onChange={(text) => change({ from: text })}
              placeholder="Name, address, type or route"
            />
            <Field
              label="To"
              name="to"
              type="search"
              value={filter.to}
              onChange={(text) => change({ to: text })}
              placeholder="Name, address, type or route"
            />
            <p aria-live="polite">
              {rows.length} of {reach.rows.length} rows, {columns.length} of {reach.columns.length} columns
            </p>
            {isFiltered(filter) && (
              <button type="button" onClick={() => setFilter(noFilter)}>
                Show all
              </button>
            )}
          </div>
          {rows.length === 0 || columns.length === 0 ? (
            <div class="empty">
              <p>No pair of peers matches. Type less in “From” and “To”, or click “Show all”.</p>
            </div>
          ) : (
            <Matrix
              network={network.id}
              {...{ reach, rows, columns }}
              onOpen={(row, column) => setOpened([row.id, column.id])}
            />
          )}
          <p class="hint">Click a cell to see why. With the keyboard: arrows move, Enter opens.</p>
        </>
      )}
      <Silent peers={reach.silent} isNeeded={reach.rows.length > 0} />
      {from && to && <Why {...{ network, reach, from, to }} onClose={() => setOpened(null)} />}
    </>
  );
}

interface LegendProps {
  readonly reach: Reach;
  readonly state: CellState | null;
  readonly onChange: (state: CellState | null) => void;
}

/** The meaning and count of each shape, which is also a filter. */
function Legend({ reach, state, onChange }: LegendProps): JSX.Element {
  const counts = useMemo(() => sumCounts(reach.groups), [reach]);
  return (
    <fieldset class="legend">
      <legend class="hidden">Show a state alone</legend>
      {cellStates.map((each) => (
        <button
          key={each}
          type="button"
          aria-pressed={state === each}
          onClick={() => onChange(state === each ? null : each)}
        >
          <State state={each} count={counts[each]} />
        </button>
      ))}
    </fieldset>
  );
}

interface GroupsProps {
  readonly reach: Reach;
  readonly filter: MatrixFilter;
  readonly onChange: (fields: Partial<MatrixFilter>) => void;
}

/** The matrix of peer types: the number of pairs by state. */
function Groups({ reach, filter: { group }, onChange }: GroupsProps): JSX.Element {
  const of = (peers: readonly Peer[]) => groupOrder.filter((type) => peers.some(({ peer_type }) => peer_type === type));
  const isChosen = (from: PeerType, to: PeerType) => group?.from === from && group.to === to;
  const cell = (from: PeerType, to: PeerType) => {
    const counts = reach.groups.get(toGroup(from, to));
    if (counts === undefined) return '–';
    const shown = cellStates.filter((state) => counts[state] > 0);
    return (
      <button
        type="button"
        class="group"
        aria-pressed={isChosen(from, to)}
        onClick={() => onChange({ group: isChosen(from, to) ? null : { from, to } })}
      >
        {shown.map((state) => (
          <State key={state} state={state} count={counts[state]} />
        ))}
      </button>
    );
  };
  return (
    <Table
      label="By type"
      rows={of(reach.rows)}
      keyOf={(type) => type}
      columns={[
        { title: 'From', cell: (type) => peerTypes[type] },
        ...of(reach.columns).map((to) => ({
          title: `to a ${peerTypes[to]}`,
          cell: (from: PeerType) => cell(from, to),
        })),
      ]}
    />
  );
}

function Silent({
  peers,
  isNeeded,
}: {
  readonly peers: readonly Peer[];
  readonly isNeeded: boolean;
}): JSX.Element | null {
  if (peers.length === 0 || !isNeeded) return null;
  return (
    <p class="hint">
      {peers.length} {peers.length === 1 ? 'peer is' : 'peers are'} left out, because no path is reported from or to{' '}
      {peers.length === 1 ? 'it' : 'them'}: {listNames(peers.map(({ name }) => name))}.
    </p>
  );
}
