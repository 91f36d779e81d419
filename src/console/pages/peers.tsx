import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Network } from '../../contract/network.ts';
import type { Peer, PeerType } from '../../contract/peer.ts';
import type { Enforcement } from '../../contract/rules.ts';
import { healthSource, useLive } from '../live.ts';
import { linkTo } from '../logic/page/route.ts';
import { describeProfile } from '../logic/peers/device.ts';
import {
  type ListedState,
  listedStates,
  makeRows,
  type PeerListView,
  type PeerRow,
  readView,
  type SortName,
  summarizePaths,
  viewPeers,
  writeView,
} from '../logic/peers/peer-list.ts';
import { labelOf, peerTypes } from '../logic/peers/peer-text.ts';
import { enforcers } from '../logic/rules/describe-rules.ts';
import { type BulkAction, BulkActions, BulkDialog } from '../parts/forms/bulk-actions.tsx';
import { Choice, Field } from '../parts/forms/form.tsx';
import { PeerDialog } from '../parts/forms/peer-actions.tsx';
import { NetworkFrame } from '../parts/network-frame.tsx';
import { PendingRemoval } from '../parts/removal.tsx';
import { Loading, Pending, Problem } from '../parts/request-state.tsx';
import { State, Verdict } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { now, Time } from '../parts/time.tsx';
import { usePolled } from '../polled.ts';
import { query, setQuery } from '../router.ts';
import { useEnforcement } from '../rules.ts';
import { canEdit } from '../session.ts';

export function PeersPage({ id }: { readonly id: number }): JSX.Element {
  // Read concurrently with the network, not after it.
  useLive(healthSource(id));
  return (
    <NetworkFrame id={id} title="peers">
      {(network) => <Peers network={network} />}
    </NetworkFrame>
  );
}

const stateChoices: readonly (readonly [ListedState | '', string])[] = [
  ['', 'all'],
  ...listedStates.map((state) => [state, state] as const),
];

const typeChoices: readonly (readonly [PeerType | '', string])[] = [
  ['', 'all'],
  ...(Object.entries(peerTypes) as [PeerType, string][]),
];

type OpenedDialog = { readonly action: 'change'; readonly peer: Peer } | { readonly action: BulkAction } | null;

function Peers({ network }: { readonly network: Network }): JSX.Element {
  const { id, peers, revision } = network;
  const [opened, setOpened] = useState<OpenedDialog>(null);
  const [selected, setSelected] = useState<ReadonlySet<string | number>>(new Set());
  // The network itself contains no suspended or expired peers.
  const unlisted = usePolled<Peer>(`api/networks/${id}/peers?suspended=true`, revision);
  const all = useMemo(
    () => [...new Map([...(unlisted.items ?? []), ...peers].map((peer) => [peer.id, peer])).values()],
    [unlisted.items, peers],
  );
  const health = useLive(healthSource(id));
  const isJudging = health.data === null && health.problem === null;
  const isReading = isJudging || (unlisted.items === null && unlisted.problem === null);
  const reports = health.data?.peers;
  const byId = useMemo(() => new Map(reports?.map((each) => [each.id, each])), [reports]);
  const paths = useMemo(() => summarizePaths(reports ?? []), [reports]);
  const rows = useMemo(() => makeRows(all, byId, paths, now.value), [all, byId, paths, now.value]);
  const enforcement = useEnforcement(network, Math.floor(now.value / 60_000));
  const view = readView(query.value);
  const { search, state, type, sort, isDescending } = view;
  const found = useMemo(() => viewPeers(rows, view), [rows, search, state, type, sort, isDescending]);
  const columns = useMemo(
    () => listColumns(network, isJudging, enforcement, (peer) => setOpened({ action: 'change', peer })),
    [network, isJudging, enforcement],
  );
  const change = (fields: Partial<PeerListView>) => setQuery(writeView({ ...view, ...fields }));
  const chosen = useMemo(() => found.flatMap(({ peer }) => (selected.has(peer.id) ? [peer] : [])), [found, selected]);
  // Peers that are no longer shown must not be removed with the shown ones.
  useEffect(() => setSelected(new Set()), [search, state, type]);
  if (all.length === 0 && unlisted.items !== null) {
    return (
      <div class="empty">
        <p>
          There is no peer yet. Go to <a href={linkTo({ page: 'add-host', network: id })}>Add a host</a>, or type{' '}
          <code>cpn key create {id} --name web-1</code>
        </p>
      </div>
    );
  }
  const isFiltered = search.trim() !== '' || state !== '' || type !== '';
  return (
    <>
      <PendingRemoval network={network} />
      <div class="search">
        <Field
          label="Search"
          name="search"
          type="search"
          value={search}
          onChange={(text) => change({ search: text })}
          placeholder="Name, address, endpoint, key or route"
        />
        <Choice
          label="State"
          name="state"
          value={state}
          options={stateChoices}
          onChange={(each) => change({ state: each })}
        />
        <Choice
          label="Type"
          name="type"
          value={type}
          options={typeChoices}
          onChange={(each) => change({ type: each })}
        />
        <p aria-live="polite">{isReading ? <Pending /> : `${found.length} of ${all.length} peers`}</p>
        {isFiltered && (
          <button type="button" onClick={() => change({ search: '', state: '', type: '' })}>
            Show all
          </button>
        )}
      </div>
      <Problem text={unlisted.problem ?? health.problem} />
      {canEdit() && chosen.length > 0 && (
        <BulkActions peers={chosen} onOpen={(action) => setOpened({ action })} onClear={() => setSelected(new Set())} />
      )}
      {found.length === 0 && isReading && (
        <div aria-busy="true">
          <Loading />
        </div>
      )}
      {found.length === 0 && !isReading && (
        <div class="empty">
          <p>No peer matches. Type a part of its name, address, endpoint, key or route, or click “Show all”.</p>
        </div>
      )}
      {found.length > 0 && (
        <Table
          label="Peers"
          columns={columns}
          rows={found}
          keyOf={({ peer }) => peer.id}
          nameOf={({ peer }) => peer.name}
          sorting={{
            by: sort,
            isDescending,
            onSort: (by) => change({ sort: by as SortName, isDescending: by === sort && !isDescending }),
          }}
          {...(canEdit() && { selection: { selected, onChange: setSelected } })}
        />
      )}
      {opened?.action === 'change' && (
        <PeerDialog {...{ network, ...opened }} onClose={() => setOpened(null)} onDone={unlisted.refresh} />
      )}
      {opened !== null && opened.action !== 'change' && (
        <BulkDialog
          {...{ network, peers: chosen, action: opened.action }}
          onClose={() => setOpened(null)}
          onDone={async (left) => {
            setSelected(new Set(left));
            await unlisted.refresh();
          }}
        />
      )}
    </>
  );
}

function listColumns(
  listed: Network,
  isJudging: boolean,
  enforcement: ReadonlyMap<number, Enforcement['by']> | null,
  onChange: (peer: Peer) => void,
): readonly Column<PeerRow>[] {
  const network = listed.id;
  const columns: readonly Column<PeerRow>[] = [
    {
      title: 'Name',
      sort: 'name',
      width: 3,
      cell: ({ peer }) => (
        <>
          <a href={linkTo({ page: 'peer', network, peer: peer.id })} title={peer.name}>
            {peer.name}
          </a>
          <Membership peer={peer} />
        </>
      ),
    },
    {
      title: 'State',
      sort: 'state',
      width: 2,
      cell: ({ state }) => {
        if (state === 'suspended' || state === 'expired' || state === 'waiting') return state;
        return isJudging ? <Pending /> : <Verdict state={state} />;
      },
    },
    {
      title: 'Last seen',
      sort: 'last_seen',
      width: 2,
      cell: ({ health }) =>
        isJudging ? (
          <Pending />
        ) : health === undefined ? (
          '–'
        ) : health.last_seen === null ? (
          'never'
        ) : (
          <Time at={health.last_seen} />
        ),
    },
    {
      title: 'Type',
      sort: 'type',
      width: 3,
      cell: ({ peer }) => (
        <>
          <span class="state">{peerTypes[peer.peer_type]}</span>
          <Second text={describeProfile(listed, peer) ?? describeRoutes(listed, peer)} />
        </>
      ),
    },
    {
      title: 'Address',
      sort: 'address',
      width: 4,
      cell: ({ peer: { address, endpoint } }) => (
        <>
          <code>{address}</code>
          <Second text={endpoint ?? ''} />
        </>
      ),
    },
    {
      title: 'Path',
      sort: 'path',
      width: 2.5,
      cell: ({ path }) =>
        isJudging ? (
          <Pending />
        ) : path === null ? (
          '–'
        ) : (
          <State
            state={path.state}
            text={path.count === path.of ? path.state : `${path.state} ${path.count} of ${path.of}`}
          />
        ),
    },
    {
      title: 'Version',
      sort: 'version',
      width: 1.5,
      cell: ({ health }) => (isJudging ? <Pending /> : (health?.version ?? '–')),
    },
    ...(enforcement === null ? [] : [enforcementColumn(enforcement)]),
  ];
  if (!canEdit()) return columns;
  return [
    ...columns,
    {
      title: 'Actions',
      isActions: true,
      width: 1.8,
      cell: ({ peer }) => (
        <button type="button" onClick={() => onChange(peer)}>
          Change<span class="hidden"> {peer.name}</span>
        </button>
      ),
    },
  ];
}

/** What enforces the rules of a closed network for connections to a peer. */
function enforcementColumn(enforcement: ReadonlyMap<number, Enforcement['by']>): Column<PeerRow> {
  return {
    title: 'Enforced by',
    width: 1.8,
    cell: ({ peer }) => {
      const by = enforcement.get(peer.id);
      return by === undefined ? '–' : by === 'nothing' ? `✕ ${enforcers[by]}` : enforcers[by];
    },
  };
}

/** A second, fainter line of a cell. */
function Second({ text }: { readonly text: string }): JSX.Element | null {
  return text === '' ? null : (
    <span class="second" title={text}>
      {text}
    </span>
  );
}

function describeRoutes({ relay }: Network, { id, peer_type, routes, priority = 0, withdrawn = [] }: Peer): string {
  if (peer_type !== 'connector') return '';
  const served = routes === undefined ? 'all routes' : routes.join(' ') || 'no routes';
  const rank = priority === 0 ? '' : `, priority ${priority}`;
  return `${id === relay ? 'relay, ' : ''}${served}${rank}${withdrawn.length === 0 ? '' : `, withdrawn: ${withdrawn.join(' ')}`}`;
}

/** A peer's label if it differs from its name, its tags, and the end of its membership. */
function Membership({ peer }: { readonly peer: Peer }): JSX.Element | null {
  const { awaiting_approval, suspended_at, expires_at, tags = [] } = peer;
  const label = labelOf(peer);
  const at = suspended_at ?? expires_at;
  if (label === null && at === undefined && tags.length === 0) return null;
  const isOver = expires_at !== undefined && Date.parse(expires_at) <= now.value;
  const isWaiting = awaiting_approval !== undefined;
  const what = isWaiting ? 'waits since' : suspended_at !== undefined ? 'suspended' : isOver ? 'expired' : 'expires';
  return (
    <>
      {' '}
      <span class="second">
        {label !== null && <span title="The name by which hosts resolve it">({label})</span>}
        {label !== null && tags.length > 0 && ' '}
        {tags.length > 0 && <span title="Tags">{tags.map((tag) => `tag:${tag}`).join(' ')}</span>}
        {(label !== null || tags.length > 0) && at !== undefined && ' '}
        {at !== undefined && (
          <span>
            {what} <Time at={at} />
          </span>
        )}
      </span>
    </>
  );
}
