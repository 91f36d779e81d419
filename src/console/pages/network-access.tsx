import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Network } from '../../contract/network.ts';
import type { Peer } from '../../contract/peer.ts';
import type { ReachablePairs } from '../../contract/rules.ts';
import {
  type AccessState,
  accessShapes,
  describeCell,
  indexAccess,
  type Traffic,
  toTrafficQuery,
} from '../logic/matrix/access.ts';
import { comparePeers, type Reach } from '../logic/matrix/reach.ts';
import { searchPeers } from '../logic/peers/peer-text.ts';
import { MatrixOrNothing, MatrixSearch } from '../parts/charts/matrix-search.tsx';
import { Field } from '../parts/forms/form.tsx';
import { Loading, Problem } from '../parts/request-state.tsx';
import { Access, Decision } from '../parts/rules/decision.tsx';
import { OpenNote } from '../parts/rules/who-reaches.tsx';
import { Why } from '../parts/why.tsx';
import { useReading, useSettled } from '../read.ts';

interface NetworkAccessProps {
  readonly network: Network;
  readonly reach: Reach;
  readonly protocol: Traffic['protocol'];
}

/** The matrix of what the rules allow, with the rule in the cell. */
export function NetworkAccess({ network, reach, protocol }: NetworkAccessProps): JSX.Element {
  const [port, setPort] = useState('443');
  const traffic = { protocol, port: useSettled(port) };
  const query = toTrafficQuery(traffic);
  return (
    <>
      <OpenNote network={network} />
      {protocol !== 'icmp' && <Field label="Port" name="port" type="number" value={port} onChange={setPort} />}
      {query === null ? (
        <p class="hint">Type a port from 1 to 65535.</p>
      ) : (
        <AccessMatrix key={query} {...{ network, reach, query, traffic }} />
      )}
    </>
  );
}

interface AccessMatrixProps {
  readonly network: Network;
  readonly reach: Reach;
  readonly query: string;
  readonly traffic: Traffic;
}

const states: readonly AccessState[] = ['allowed', 'denied'];

function AccessMatrix({ network, reach, query, traffic }: AccessMatrixProps): JSX.Element {
  const path = `api/networks/${network.id}/rules/reach?${query}`;
  const { data, isRead, problem } = useReading<ReachablePairs>(path, network.revision);
  const [filter, setFilter] = useState({ from: '', to: '' });
  const [opened, setOpened] = useState<readonly [number, number] | null>(null);
  const index = useMemo(() => (data === null ? null : indexAccess(data)), [data]);
  const peers = useMemo(() => network.peers.toSorted(comparePeers), [network.peers]);
  const rows = useMemo(() => searchPeers(peers, filter.from), [peers, filter.from]);
  const columns = useMemo(() => searchPeers(peers, filter.to), [peers, filter.to]);
  const [from, to] = opened?.map((id) => reach.byId.get(id)) ?? [];
  if (index === null) {
    return (
      <div aria-busy={!isRead}>
        {!isRead && <Loading />}
        <Problem text={problem} />
      </div>
    );
  }
  const cellOf = (row: Peer, column: Peer) => {
    const state = index.stateOf(row, column);
    const label = describeCell(index, row, column);
    return { state, shape: accessShapes[state], label, title: label };
  };
  const isFiltered = filter.from.trim() !== '' || filter.to.trim() !== '';
  return (
    <>
      <Problem text={problem} />
      <p class="legend">
        {states.map((state) => (
          <Access key={state} state={state} />
        ))}
        {!index.isComplete && <Access state="unknown" />}
      </p>
      {!index.isComplete && (
        <p class="hint">The list of pairs is too long. Click a cell with a dot for its decision.</p>
      )}
      <MatrixSearch
        {...filter}
        onChange={(fields) => setFilter((before) => ({ ...before, ...fields }))}
        counts={`${rows.length} of ${peers.length} rows, ${columns.length} of ${peers.length} columns`}
        {...(isFiltered && { onClear: () => setFilter({ from: '', to: '' }) })}
      />
      <MatrixOrNothing
        {...{ network: network.id, reach, rows, columns, cellOf }}
        total={peers.length}
        onOpen={(row, column) => setOpened([row.id, column.id])}
      />
      {from && to && (
        <Why {...{ network, reach, from, to }} onClose={() => setOpened(null)}>
          {from.id !== to.id && (
            <Decision network={network.id} from={`peer:${from.name}`} to={`peer:${to.name}`} traffic={traffic} />
          )}
        </Why>
      )}
    </>
  );
}
