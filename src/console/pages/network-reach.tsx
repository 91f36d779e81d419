import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Network } from '../../contract/network.ts';
import type { Peer, PeerType } from '../../contract/peer.ts';
import { listNames } from '../../core/util/list-names.ts';
import type { Traffic } from '../logic/matrix/access.ts';
import { describePathCell } from '../logic/matrix/explain-path.ts';
import { filterMatrix, isFiltered, type MatrixFilter, noFilter } from '../logic/matrix/filter-matrix.ts';
import { type CellState, cellStates, groupOrder, type Reach, sumCounts, toGroup } from '../logic/matrix/reach.ts';
import { peerTypes } from '../logic/peers/peer-text.ts';
import { MatrixOrNothing, MatrixSearch } from '../parts/charts/matrix-search.tsx';
import { Choice } from '../parts/forms/form.tsx';
import { State } from '../parts/state.tsx';
import { Table } from '../parts/table.tsx';
import { Why } from '../parts/why.tsx';
import { useHasRules } from '../rules.ts';
import { NetworkAccess } from './network-access.tsx';

interface ReachProps {
  readonly network: Network;
  readonly reach: Reach;
}

/** With more peers than this, a summary by type is shown first. */
const fewPeers = 30;

type Shown = 'paths' | Traffic['protocol'];

const shownChoices: readonly (readonly [Shown, string])[] = [
  ['paths', 'paths, as hosts report them'],
  ['tcp', 'who may use TCP'],
  ['udp', 'who may use UDP'],
  ['icmp', 'who may use ICMP'],
];

/** The matrix of all peers: how they reach each other, or what the rules allow. */
export function NetworkReach({ network, reach }: ReachProps): JSX.Element {
  const [shown, setShown] = useState<Shown>('paths');
  const hasRules = useHasRules(network.id);
  return (
    <>
      <h2>Who reaches whom</h2>
      {hasRules && <Choice<Shown> label="Show" name="show" value={shown} options={shownChoices} onChange={setShown} />}
      {shown === 'paths' ? (
        <Paths network={network} reach={reach} />
      ) : (
        <NetworkAccess network={network} reach={reach} protocol={shown} />
      )}
    </>
  );
}

function Paths({ network, reach }: ReachProps): JSX.Element {
  const [filter, setFilter] = useState<MatrixFilter>(noFilter);
  const [opened, setOpened] = useState<readonly [number, number] | null>(null);
  const { rows, columns } = useMemo(() => filterMatrix(reach, filter), [reach, filter]);
  const change = (fields: Partial<MatrixFilter>) => setFilter((before) => ({ ...before, ...fields }));
  const [from, to] = opened?.map((id) => reach.byId.get(id)) ?? [];
  if (reach.rows.length === 0) {
    return (
      <div class="empty">
        <p>
          No host reports yet whom it reaches. The daemon reports: on a host, type{' '}
          <code>sudo systemctl enable --now cpn</code>
        </p>
      </div>
    );
  }
  return (
    <>
      <Legend reach={reach} state={filter.state} onChange={(state) => change({ state })} />
      {reach.rows.length > fewPeers && <Groups reach={reach} filter={filter} onChange={change} />}
      <MatrixSearch
        {...{ from: filter.from, to: filter.to }}
        onChange={change}
        counts={`${rows.length} of ${reach.rows.length} rows, ${columns.length} of ${reach.columns.length} columns`}
        {...(isFiltered(filter) && { onClear: () => setFilter(noFilter) })}
      />
      <MatrixOrNothing
        {...{ network: network.id, reach, rows, columns }}
        cellOf={(row, column) => describePathCell(reach, row, column)}
        total={Math.max(reach.rows.length, reach.columns.length)}
        onOpen={(row, column) => setOpened([row.id, column.id])}
      />
      <Silent peers={reach.silent} />
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

function Silent({ peers }: { readonly peers: readonly Peer[] }): JSX.Element | null {
  if (peers.length === 0) return null;
  return (
    <p class="hint">
      {peers.length} {peers.length === 1 ? 'peer is' : 'peers are'} left out, because no path is reported from or to{' '}
      {peers.length === 1 ? 'it' : 'them'}: {listNames(peers.map(({ name }) => name))}.
    </p>
  );
}
