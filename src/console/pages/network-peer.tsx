import type { ComponentChildren, JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Health, PathHealth } from '../../contract/health.ts';
import type { Network } from '../../contract/network.ts';
import type { Peer, PeerDetails } from '../../contract/peer.ts';
import type { PeerTraffic } from '../../contract/traffic.ts';
import { comparedKeyOf, fingerprintOf } from '../../core/crypto/fingerprint.ts';
import { healthSource, useLive } from '../live.ts';
import { explainPeer } from '../logic/matrix/explain-path.ts';
import { indexReach, listAround, type Reach } from '../logic/matrix/reach.ts';
import { hasTraffic } from '../logic/network/rates.ts';
import { linkTo } from '../logic/page/route.ts';
import { findConnectors } from '../logic/peers/connectors.ts';
import { dnsNameOf, nameOf, peerTypes } from '../logic/peers/peer-text.ts';
import { formatRate, formatSeconds } from '../logic/text/format.ts';
import { Sparkline, useRates } from '../parts/charts/sparkline.tsx';
import { TrafficChart } from '../parts/charts/traffic-chart.tsx';
import { type OpenedPeer, PeerActions, PeerDialog } from '../parts/forms/peer-actions.tsx';
import { NetworkFrame } from '../parts/network-frame.tsx';
import { Loading, Problem } from '../parts/request-state.tsx';
import { WhoReaches } from '../parts/rules/who-reaches.tsx';
import { State, Verdict } from '../parts/state.tsx';
import { Table } from '../parts/table.tsx';
import { now, Time } from '../parts/time.tsx';
import { type Fact, Facts, Remedies, Why } from '../parts/why.tsx';
import { useReading } from '../read.ts';
import { go, route } from '../router.ts';
import { useHasRules } from '../rules.ts';
import { canEdit } from '../session.ts';

interface NetworkPeerPageProps {
  readonly id: number;
  readonly peer: number;
}

/** The page of one peer: its paths in both directions, its connectors, and the LANs behind it. */
export function NetworkPeerPage({ id, peer }: NetworkPeerPageProps): JSX.Element {
  return (
    <NetworkFrame id={id} title="a peer">
      {(network) => {
        const found = network.peers.find((each) => each.id === peer);
        if (found !== undefined) return <Around network={network} peer={found} />;
        return <Unlisted network={network} id={peer} />;
      }}
    </NetworkFrame>
  );
}

/** A peer that is in no map: suspended, expired or removed. */
function Unlisted({ network, id }: { readonly network: Network; readonly id: number }): JSX.Element {
  const path = `api/networks/${network.id}/peers/${id}`;
  const { data: peer, isRead, problem } = useReading<PeerDetails>(path, network.revision);
  const [opened, setOpened] = useState<OpenedPeer | null>(null);
  if (!isRead) {
    return (
      <div aria-busy="true">
        <Loading />
      </div>
    );
  }
  if (peer === null) {
    return (
      <div class="empty">
        <Problem text={problem} />
        <p>
          There is no such peer. It may have been removed. Go to{' '}
          <a href={linkTo({ page: 'peers', network: network.id })}>the peers</a>.
        </p>
      </div>
    );
  }
  return (
    <>
      <h2>{nameOf(peer)}</h2>
      <p>{describeUnlisted(peer)}</p>
      <Facts facts={listFacts(network, peer, peer)} />
      {canEdit() && (
        <div class="actions">
          <PeerActions peer={peer} onOpen={setOpened} />
        </div>
      )}
      {opened && (
        <PeerDialog
          {...{ network, ...opened }}
          onClose={() => setOpened(null)}
          onDone={() => opened.action === 'remove' && leavePage(network, opened.peer)}
        />
      )}
    </>
  );
}

function describeUnlisted({ awaiting_approval, suspended_at }: Peer): string {
  if (awaiting_approval !== undefined)
    return 'It waits for the approval of an owner or admin. Until then it reaches no other peer.';
  const why = suspended_at === undefined ? 'It has expired' : 'It is suspended';
  return `${why}: no host talks to it, and its token is refused.`;
}

/** Goes to the list after the page's peer was removed, unless the user has left the page. */
function leavePage({ id: network }: Network, peer: Peer): void {
  const at = route.value;
  if (at.page === 'peer' && at.network === network && at.peer === peer.id) go({ page: 'peers', network });
}

/** The stored facts of a peer, without its health. */
function listFacts(network: Network, peer: Peer, details: PeerDetails | null): readonly Fact[] {
  const { relay } = network;
  const key = details?.enrollment_key ?? null;
  return [
    ['Type', peerTypes[peer.peer_type]],
    ...(peer.id === relay ? [['Relay', 'hosts without an endpoint reach each other through it'] as const] : []),
    ['Address', <code key="address">{peer.address}</code>],
    ['Name on hosts', <code key="dns">{dnsNameOf(peer, network)}</code>],
    ['Endpoint', peer.endpoint === null ? 'none' : <code key="endpoint">{peer.endpoint}</code>],
    ['Public key', <code key="key">{peer.public_key}</code>],
    [
      'Enrolled',
      <>
        <Time at={peer.created_at} />
        {key !== null && ` with the key ${key.name}`}
      </>,
    ],
    ...(peer.tags === undefined ? [] : [['Tags', peer.tags.join(', ')] as const]),
    ...(peer.awaiting_approval === undefined
      ? []
      : [
          ['Waits since', <Time key="waiting" at={peer.awaiting_approval} />] as const,
          ['Fingerprint', <code key="fingerprint">{fingerprintOf(comparedKeyOf(peer))}</code>] as const,
        ]),
    ...(peer.suspended_at === undefined || peer.awaiting_approval !== undefined
      ? []
      : [['Suspended', <Time key="suspended" at={peer.suspended_at} />] as const]),
    ...(peer.expires_at === undefined ? [] : [['Expires', <Time key="expires" at={peer.expires_at} />] as const]),
  ];
}

function Around({ network, peer }: { readonly network: Network; readonly peer: Peer }): JSX.Element {
  const { data, problem } = useLive(healthSource(network.id));
  const [opened, setOpened] = useState<OpenedPeer | null>(null);
  return (
    <div aria-busy={data === null && problem === null}>
      <div class="heading">
        <h2>{nameOf(peer)}</h2>
        {canEdit() && (
          <div class="actions">
            <PeerActions peer={peer} onOpen={setOpened} />
          </div>
        )}
      </div>
      <Problem text={problem} />
      {data === null && problem === null && <Loading />}
      {data !== null && <PeerHealthView network={network} peer={peer} health={data} />}
      {opened && (
        <PeerDialog
          {...{ network, ...opened }}
          onClose={() => setOpened(null)}
          onDone={() => opened.action === 'remove' && leavePage(network, opened.peer)}
        />
      )}
    </div>
  );
}

interface PeerViewProps {
  readonly network: Network;
  readonly peer: Peer;
  readonly health: Health;
}

function PeerHealthView({ network, peer, health }: PeerViewProps): JSX.Element {
  const reach = useMemo(() => indexReach(network.peers, health), [network.peers, health]);
  const hasRules = useHasRules(network.id);
  const samples = useRates(network.id, health).get(peer.id) ?? [];
  const own = reach.health.get(peer.id);
  const { summary, facts, remedies } = explainPeer(network, reach, peer);
  const { data: details } = useReading<PeerDetails>(`api/networks/${network.id}/peers/${peer.id}`, network.revision);
  const seen: readonly (readonly [string, ComponentChildren])[] = [
    ['Last seen', own?.last_seen && <Time at={own.last_seen} />],
    ['Report', own?.reported_at && <Time at={own.reported_at} />],
    ['Version', own?.version],
    ['Platform', own?.platform],
    ['Requests come from', own?.source_address && <code>{own.source_address}</code>],
  ];
  return (
    <>
      <p>
        <Verdict state={own?.state ?? 'unknown'} />
      </p>
      <p>{summary}</p>
      <Facts facts={[...facts, ...seen.filter(([, value]) => value), ...listFacts(network, peer, details)]} />
      <Remedies remedies={remedies} />
      {samples.length > 0 && (
        <p class="traffic">
          Receives <Sparkline samples={samples} of="received" /> Sends <Sparkline samples={samples} of="sent" />
        </p>
      )}
      <Traffic network={network.id} peer={peer.id} />
      <Paths network={network} reach={reach} peer={peer} />
      {hasRules && (
        <>
          <h2>Who can reach it</h2>
          <WhoReaches network={network} to={`peer:${peer.name}`} />
        </>
      )}
      <Routes network={network} reach={reach} peer={peer} />
      {peer.peer_type === 'connector' && <Served network={network} reach={reach} peer={peer} />}
    </>
  );
}

/** Shows nothing if no traffic is kept. */
function Traffic({ network, peer }: { readonly network: number; readonly peer: number }): JSX.Element | null {
  const path = `api/networks/${network}/peers/${peer}/traffic`;
  const { data } = useReading<PeerTraffic>(path, Math.floor(now.value / 60_000));
  if (data === null || !hasTraffic(data.received, data.sent)) return null;
  return (
    <>
      <h2>Traffic of the last 24 hours</h2>
      <TrafficChart {...data} />
    </>
  );
}

interface PeerReachProps {
  readonly network: Network;
  readonly reach: Reach;
  readonly peer: Peer;
}

function Paths({ network, reach, peer }: PeerReachProps): JSX.Element {
  const [openedId, setOpenedId] = useState<number | null>(null);
  const pairs = useMemo(() => listAround(reach, peer.id), [reach, peer.id]);
  const opened = openedId === null ? undefined : reach.byId.get(openedId);
  return (
    <>
      <h2>Paths</h2>
      {pairs.length === 0 ? (
        <div class="empty">
          <p>
            No path is reported from or to it. To send a packet to it, type <code>ping {peer.address}</code> on another
            host.
          </p>
        </div>
      ) : (
        <Table
          label="Paths"
          rows={pairs}
          keyOf={({ other }) => other.id}
          columns={[
            {
              title: 'Peer',
              cell: ({ other }) => (
                <a href={linkTo({ page: 'peer', network: network.id, peer: other.id })}>{other.name}</a>
              ),
            },
            { title: 'From here', cell: ({ from }) => <State state={from?.path ?? 'unknown'} /> },
            { title: 'To here', cell: ({ to }) => <State state={to?.path ?? 'unknown'} /> },
            { title: 'Details', cell: ({ from, last }) => describePath(reach, from, last) },
            {
              title: 'Why',
              isActions: true,
              cell: ({ other }) => (
                <button type="button" onClick={() => setOpenedId(other.id)}>
                  Why<span class="hidden"> {other.name}</span>
                </button>
              ),
            },
          ]}
        />
      )}
      {opened && <Why {...{ network, reach }} from={peer} to={opened} onClose={() => setOpenedId(null)} />}
    </>
  );
}

function describePath(reach: Reach, path: PathHealth | undefined, last: PathHealth | undefined): string {
  if (last !== undefined) return `${last.path} in its last report`;
  if (path === undefined) return '–';
  const { via, direct_since, handshake_age, rtt_ms, rx_rate, tx_rate } = path;
  const parts = [
    via === undefined ? null : `by ${reach.byId.get(via)?.name ?? 'a peer that is gone'}`,
    direct_since === undefined ? null : 'through NAT',
    rtt_ms === undefined ? null : `${rtt_ms} ms`,
    handshake_age === undefined ? null : `handshake ${formatSeconds(handshake_age)} old`,
    rx_rate === undefined ? null : `receives ${formatRate(rx_rate)}`,
    tx_rate === undefined ? null : `sends ${formatRate(tx_rate)}`,
  ];
  return parts.filter((part) => part !== null).join(', ') || '–';
}

/** The connectors that the peer uses. */
function Routes({ network, reach, peer }: PeerReachProps): JSX.Element | null {
  const routes = reach.health.get(peer.id)?.routes.filter(({ connector }) => connector !== peer.id) ?? [];
  if (network.routes.length === 0 || routes.length === 0) return null;
  return (
    <>
      <h2>Its connectors</h2>
      <Table
        label="Its connectors"
        rows={routes}
        keyOf={({ route }) => route}
        columns={[
          { title: 'Route', cell: ({ route }) => <code>{route}</code> },
          {
            title: 'Connector in use',
            cell: ({ connector }) =>
              connector === null ? 'none answers' : (reach.byId.get(connector)?.name ?? 'a peer that is gone'),
          },
        ]}
      />
    </>
  );
}

/** The LANs behind a connector. */
function Served({ network, reach, peer }: PeerReachProps): JSX.Element {
  const served = network.routes.filter((route) => findConnectors([peer], route).length > 0);
  const isOffline = reach.health.get(peer.id)?.state === 'offline';
  const lans = new Map(reach.health.get(peer.id)?.routes.map(({ route, lan }) => [route, lan]));
  const locals = new Map(reach.health.get(peer.id)?.map?.map(({ route, local }) => [route, local]));
  const users = (route: string) =>
    [...reach.health.values()].filter(({ routes }) =>
      routes.some((each) => each.route === route && each.connector === peer.id),
    ).length;
  return (
    <>
      <h2>LANs behind it</h2>
      {served.length === 0 ? (
        <div class="empty">
          <p>
            It serves no route. To serve one, type{' '}
            <code>cpn network update {network.id} --add-route 192.168.50.0/24</code>
          </p>
        </div>
      ) : (
        <Table
          label="LANs behind it"
          rows={served}
          keyOf={(route) => route}
          columns={[
            {
              title: 'Route',
              cell: (route) => (
                <>
                  <code>{route}</code>
                  {locals.has(route) && (
                    <div>
                      is <code>{locals.get(route)}</code> there
                    </div>
                  )}
                </>
              ),
            },
            { title: 'LAN', cell: (route) => (isOffline ? 'unknown' : describeLan(lans.get(route))) },
            { title: 'Hosts that use it', cell: users },
          ]}
        />
      )}
    </>
  );
}

function describeLan(lan: 'up' | 'down' | undefined): string {
  if (lan === undefined) return 'not probed';
  return lan === 'up' ? 'answers' : '✕ does not answer';
}
