import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { PeerState } from '../../contract/health.ts';
import type { Network } from '../../contract/network.ts';
import type { ChangePeer, Peer } from '../../contract/peer.ts';
import { announce } from '../announcer.ts';
import { ApiError, call } from '../client.ts';
import { healthSource, useLive } from '../live.ts';
import { peerTypes } from '../logic/peer-types.ts';
import { linkTo } from '../logic/route.ts';
import { searchPeers } from '../logic/search.ts';
import { formatTime, inDays } from '../logic/time.ts';
import { splitWords } from '../logic/words.ts';
import { Confirm, Dialog } from '../parts/dialog.tsx';
import { Field, Form } from '../parts/form.tsx';
import { NetworkFrame } from '../parts/network-frame.tsx';
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

type Opened = { readonly dialog: 'change' | 'suspend' | 'remove'; readonly peer: Peer } | null;

function Peers({ network }: { readonly network: Network }): JSX.Element {
  const { id, peers, revision } = network;
  const [query, setQuery] = useState('');
  const [opened, setOpened] = useState<Opened>(null);
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
  const close = () => setOpened(null);
  const done = async () => {
    close();
    await unlisted.refresh();
  };
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
      {opened?.dialog === 'change' && <ChangePeerDialog {...{ network, peer: opened.peer, close, done }} />}
      {opened?.dialog === 'suspend' && <SuspendDialog {...{ network, peer: opened.peer, close, done }} />}
      {opened?.dialog === 'remove' && <RemoveDialog {...{ network, peer: opened.peer, close, done }} />}
    </>
  );
}

function listColumns(
  network: number,
  states: ReadonlyMap<number, PeerState>,
  open: (opened: Opened) => void,
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
  const button = (dialog: 'change' | 'suspend' | 'remove', text: string, peer: Peer, isDangerous = false) => (
    <button type="button" class={isDangerous ? 'danger' : ''} onClick={() => open({ dialog, peer })}>
      {text}
      <span class="hidden"> {peer.name}</span>
    </button>
  );
  return [
    ...columns,
    {
      title: 'Actions',
      isActions: true,
      cell: (peer) => (
        <>
          {button('change', 'Change', peer)}
          {button('suspend', peer.suspended_at === undefined ? 'Suspend' : 'Resume', peer)}
          {button('remove', 'Remove', peer, true)}
        </>
      ),
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

interface PeerDialogProps {
  readonly network: Network;
  readonly peer: Peer;
  readonly close: () => void;
  readonly done: () => Promise<void>;
}

const change = (network: Network, peer: Peer, fields: ChangePeer) =>
  call<Peer>('PATCH', `api/networks/${network.id}/peers/${peer.id}`, fields);

function ChangePeerDialog({ network, peer, close, done }: PeerDialogProps): JSX.Element {
  const isConnector = peer.peer_type === 'connector';
  const [name, setName] = useState(peer.name);
  const [endpoint, setEndpoint] = useState(peer.endpoint ?? '');
  const [hasAll, setAll] = useState(peer.routes === undefined);
  const [routes, setRoutes] = useState((peer.routes ?? []).join('\n'));
  const [priority, setPriority] = useState(String(peer.priority ?? 0));
  const [days, setDays] = useState('');
  const [isForever, setForever] = useState(peer.expires_at === undefined);
  const save = async () => {
    const wanted = hasAll ? null : splitWords(routes);
    const expiry = inDays(days, new Date());
    const wasForever = peer.expires_at === undefined;
    if (wasForever && !isForever && expiry === null) {
      throw new ApiError(422, 'Type in how many days the peer expires.', { expires_at: ['is required'] });
    }
    const fields: ChangePeer = {
      ...(name !== peer.name && { name }),
      ...(endpoint.trim() !== (peer.endpoint ?? '') && { endpoint: endpoint.trim() || null }),
      ...(isConnector && JSON.stringify(wanted) !== JSON.stringify(peer.routes ?? null) && { routes: wanted }),
      ...(isConnector && Number(priority) !== (peer.priority ?? 0) && { priority: Number(priority) }),
      ...(isForever && !wasForever && { expires_at: null }),
      ...(!isForever && expiry !== null && { expires_at: expiry }),
    };
    await change(network, peer, fields);
    announce(`${name} is changed.`);
    await done();
  };
  return (
    <Dialog title={`Change ${peer.name}`} onClose={close}>
      <Form submit="Save" onSubmit={save} onCancel={close}>
        <Field label="Name" name="name" value={name} onChange={setName} />
        <Field
          label="Endpoint"
          name="endpoint"
          value={endpoint}
          onChange={setEndpoint}
          hint="Where other peers dial it, such as 203.0.113.22:51820. Empty where it dials them."
        />
        {isConnector && (
          <>
            <Check label="Serves all routes of the network" isChecked={hasAll} onChange={setAll} />
            {!hasAll && (
              <Field
                label="Routes"
                name="routes"
                value={routes}
                onChange={setRoutes}
                isMultiline
                hint={`Some of: ${network.routes.join(' ') || 'none'}`}
              />
            )}
            <Field
              label="Priority"
              name="priority"
              type="number"
              value={priority}
              onChange={setPriority}
              hint="0 to 1000. Of the healthy connectors of a route, the highest priority serves it."
            />
          </>
        )}
        <Check label="Never expires" isChecked={isForever} onChange={setForever} />
        {!isForever && (
          <Field
            label="Days until it expires"
            name="expires_at"
            type="number"
            value={days}
            onChange={setDays}
            hint={peer.expires_at === undefined ? 'From now on.' : `It expires ${formatTime(peer.expires_at)}.`}
          />
        )}
      </Form>
    </Dialog>
  );
}

interface CheckProps {
  readonly label: string;
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
}

function Check({ label, isChecked, onChange }: CheckProps): JSX.Element {
  return (
    <label class="check">
      <input type="checkbox" checked={isChecked} onChange={(event) => onChange(event.currentTarget.checked)} /> {label}
    </label>
  );
}

function SuspendDialog({ network, peer, close, done }: PeerDialogProps): JSX.Element {
  const isSuspended = peer.suspended_at !== undefined;
  const action = isSuspended ? 'Resume' : 'Suspend';
  const run = async () => {
    await change(network, peer, { suspended: !isSuspended });
    announce(`${peer.name} is ${isSuspended ? 'in the network again' : 'suspended'}.`);
    await done();
  };
  return (
    <Confirm title={`${action} ${peer.name}?`} action={action} onConfirm={run} onClose={close}>
      <p>
        {isSuspended
          ? 'All hosts receive this peer again.'
          : 'All hosts drop this peer, and its token is refused. It keeps its name and address.'}
      </p>
      {!isSuspended && <p>A user with an enrolment key that has uses left can join again. Revoke such keys too.</p>}
    </Confirm>
  );
}

function RemoveDialog({ network, peer, close, done }: PeerDialogProps): JSX.Element {
  const run = async () => {
    await call('DELETE', `api/networks/${network.id}/peers/${peer.id}`);
    announce(`${peer.name} is removed.`);
    await done();
  };
  return (
    <Confirm title={`Remove ${peer.name}?`} action="Remove" onConfirm={run} onClose={close}>
      <p>All hosts drop this peer. It needs a new enrolment key to come back.</p>
    </Confirm>
  );
}
