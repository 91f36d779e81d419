import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { PeerState } from '../../contract/health.ts';
import type { Network } from '../../contract/network.ts';
import type { Peer } from '../../contract/peer.ts';
import { healthSource, useLive } from '../live.ts';
import { linkTo } from '../logic/page/route.ts';
import { peerTypes } from '../logic/peers/peer-types.ts';
import { searchPeers } from '../logic/peers/search.ts';
import { formatTime } from '../logic/text/time.ts';
import { Field } from '../parts/form.tsx';
import { NetworkFrame } from '../parts/network-frame.tsx';
import { type OpenedPeer, PeerActions, PeerDialog } from '../parts/peer-actions.tsx';
import { PendingRemoval } from '../parts/pending-removal.tsx';
import { Problem } from '../parts/problem.tsx';
import { Verdict } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { usePolled } from '../polled.ts';
import { canEdit } from '../session.ts';

export function PeersPage({ id }: { readonly id: number }): JSX.Element {
  // Read at the same time as the network, not after it.
  useLive(healthSource(id));
  return (
    <NetworkFrame id={id} title="peers">
      {(network) => <Peers network={network} />}
    </NetworkFrame>
  );
}

function Peers({ network }: { readonly network: Network }): JSX.Element {
  const { id, peers, revision } = network;
  const [query, setQuery] = useState('');
  const [opened, setOpened] = useState<OpenedPeer | null>(null);
  // The network itself leaves out what is suspended or has expired.
  const unlisted = usePolled<Peer>(`api/networks/${id}/peers?suspended=true`, revision);
  const all = useMemo(
    () => [...new Map([...(unlisted.items ?? []), ...peers].map((peer) => [peer.id, peer])).values()],
    [unlisted.items, peers],
  );
  const found = useMemo(() => searchPeers(all, query), [all, query]);
  const health = useLive(healthSource(id));
  const states = useMemo(() => new Map(health.data?.peers.map(({ id, state }) => [id, state])), [health.data]);
  const columns = useMemo(() => listColumns(id, states, setOpened), [id, states]);
  if (all.length === 0) {
    return (
      <div class="empty">
        <p>
          There is no peer yet. Go to <a href={linkTo({ page: 'add-host', network: id })}>Add a host</a>, or type{' '}
          <code>cpn key create {id} --name web-1</code>
        </p>
      </div>
    );
  }
  return (
    <>
      <PendingRemoval network={network} />
      <div class="search">
        <Field
          label="Search"
          name="search"
          type="search"
          value={query}
          onChange={setQuery}
          placeholder="Name, address, endpoint, key or route"
        />
        <p aria-live="polite">
          {found.length} of {all.length} peers
        </p>
      </div>
      <Problem text={unlisted.problem ?? health.problem} />
      {found.length === 0 ? (
        <div class="empty">
          <p>No peer matches. Type a part of its name, address, endpoint, key or route.</p>
        </div>
      ) : (
        <Table label="Peers" columns={columns} rows={found} keyOf={(peer) => peer.id} />
      )}
      {opened && <PeerDialog {...{ network, ...opened }} onClose={() => setOpened(null)} onDone={unlisted.refresh} />}
    </>
  );
}

function listColumns(
  network: number,
  states: ReadonlyMap<number, PeerState>,
  open: (opened: OpenedPeer) => void,
): readonly Column<Peer>[] {
  const columns: readonly Column<Peer>[] = [
    {
      title: 'Name',
      cell: ({ id, name, suspended_at }) =>
        suspended_at === undefined ? <a href={linkTo({ page: 'peer', network, peer: id })}>{name}</a> : name,
    },
    {
      title: 'State',
      cell: ({ id, suspended_at }) =>
        suspended_at === undefined ? <Verdict state={states.get(id) ?? 'unknown'} /> : '–',
    },
    { title: 'Type', cell: ({ peer_type }) => peerTypes[peer_type] },
    { title: 'Address', cell: ({ address }) => <code>{address}</code> },
    { title: 'Endpoint', cell: ({ endpoint }) => <code>{endpoint ?? '–'}</code> },
    { title: 'Routes', cell: describeRoutes },
    { title: 'Membership', cell: describeMembership },
  ];
  if (!canEdit()) return columns;
  return [
    ...columns,
    {
      title: 'Actions',
      isActions: true,
      cell: (peer) => <PeerActions peer={peer} onOpen={open} />,
    },
  ];
}

function describeRoutes({ peer_type, routes, priority = 0, withdrawn = [] }: Peer): string {
  if (peer_type !== 'connector') return '–';
  const served = routes === undefined ? 'all' : routes.join(' ') || 'none';
  const rank = priority === 0 ? '' : `, priority ${priority}`;
  return `${served}${rank}${withdrawn.length === 0 ? '' : `, withdrawn: ${withdrawn.join(' ')}`}`;
}

function describeMembership({ suspended_at, expires_at }: Peer): string {
  if (suspended_at !== undefined) return `suspended since ${formatTime(suspended_at)}`;
  if (expires_at === undefined) return 'listed';
  return `${new Date(expires_at) <= new Date() ? 'expired' : 'expires'} ${formatTime(expires_at)}`;
}
