import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Event } from '../../contract/event.ts';
import type { Health } from '../../contract/health.ts';
import type { Network } from '../../contract/network.ts';
import { describeEvent } from '../../core/events/describe-event.ts';
import { findBeginning, findFailovers, layOutFailovers } from '../logic/events/failovers.ts';
import { linkTo } from '../logic/page/route.ts';
import { findConnectors, findMappedLans } from '../logic/peers/connectors.ts';
import { Timeline } from '../parts/charts/timeline.tsx';
import { Dialog } from '../parts/forms/dialog.tsx';
import { WhoReaches } from '../parts/rules/who-reaches.tsx';
import { Verdict } from '../parts/state.tsx';
import { Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { useHasRules } from '../rules.ts';

interface RoutesProps {
  readonly network: Network;
  /** Null before the first reply. */
  readonly health: Health | null;
}

export function NetworkRoutes({ network, health }: RoutesProps): JSX.Element {
  const { id, routes, peers, relay, spread, route_dns = [] } = network;
  const hasRules = useHasRules(id);
  const [opened, setOpened] = useState<string | null>(null);
  const verdicts = useMemo(() => new Map(health?.routes.map((each) => [each.route, each])), [health]);
  const names = useMemo(() => new Map(peers.map((peer) => [peer.id, peer.name])), [peers]);
  const link = (peer: number) => (
    <a key={peer} href={linkTo({ page: 'peer', network: id, peer })}>
      {names.get(peer) ?? `peer ${peer}`}
    </a>
  );
  const showShare = ({ connector, hosts }: { readonly connector: number; readonly hosts: number }) => (
    <span key={connector}>
      {link(connector)}: {hosts}
    </span>
  );
  return (
    <>
      <h2>Routes</h2>
      {spread === true && <p>Hosts spread over equal connectors that masquerade: each uses its own one.</p>}
      {relay !== undefined && <p>Hosts without an endpoint reach each other through {link(relay)}.</p>}
      {routes.length === 0 ? (
        <div class="empty">
          <p>
            There is no route. To reach a LAN behind a connector, type{' '}
            <code>cpn network update {id} --add-route 192.168.50.0/24</code>
          </p>
        </div>
      ) : (
        <Table
          label="Routes"
          rows={routes}
          keyOf={(route) => route}
          columns={[
            {
              title: 'Route',
              cell: (route) => (
                <>
                  <code>{route}</code>
                  {findMappedLans(health, findConnectors(peers, route), route).map(({ peer, local }) => (
                    <div key={peer}>
                      is <code>{local}</code> behind {link(peer)}
                    </div>
                  ))}
                  {route_dns
                    .filter((each) => each.route === route)
                    .map(({ domains, dns_servers }) => (
                      <div key={route}>
                        domains {domains.join(', ')}; DNS {dns_servers.join(', ')}
                      </div>
                    ))}
                </>
              ),
            },
            { title: 'State', cell: (route) => <Verdict state={verdicts.get(route)?.state ?? 'unknown'} /> },
            {
              title: 'Active',
              cell: (route) => {
                const { connector = null } = verdicts.get(route) ?? {};
                return connector === null ? 'none' : link(connector);
              },
            },
            {
              title: 'Standby',
              cell: (route) => {
                const { standby = [] } = verdicts.get(route) ?? {};
                return standby.length === 0 ? 'none' : <span class="links">{standby.map(link)}</span>;
              },
            },
            ...(spread === true
              ? [
                  {
                    title: 'Hosts of each connector',
                    cell: (route: string) => (
                      <span class="links">{(verdicts.get(route)?.shares ?? []).map(showShare)}</span>
                    ),
                  },
                ]
              : []),
            { title: 'Why', cell: (route) => verdicts.get(route)?.why ?? 'there is no verdict yet' },
            {
              title: 'Connectors, in order of preference',
              cell: (route) => {
                const { never_answered = [] } = verdicts.get(route) ?? {};
                const connectors = findConnectors(peers, route).map(({ id, name }) =>
                  never_answered.includes(id) ? `${name} (never answered)` : name,
                );
                return connectors.join(', ') || 'none: hosts do not reach this route';
              },
            },
            ...(hasRules
              ? [
                  {
                    title: 'Actions',
                    isActions: true,
                    cell: (route: string) => (
                      <button type="button" onClick={() => setOpened(route)}>
                        Who can reach it<span class="hidden"> {route}</span>
                      </button>
                    ),
                  },
                ]
              : []),
          ]}
        />
      )}
      {opened !== null && (
        <Dialog title={`Who can reach ${opened}`} onClose={() => setOpened(null)}>
          <WhoReaches network={network} to={`route:${opened}`} />
          <div class="actions">
            <button type="button" onClick={() => setOpened(null)}>
              Close
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

const mostListed = 5;

export function NetworkFailovers({
  network: { id, peers },
  events,
}: {
  readonly network: Network;
  readonly events: readonly Event[];
}): JSX.Element {
  const now = useNow();
  const since = useMemo(() => findBeginning(peers, events), [peers, events]);
  const line = useMemo(() => layOutFailovers(events, now, since), [events, now, since]);
  const last = useMemo(() => findFailovers(events).slice(-mostListed).toReversed(), [events]);
  return (
    <>
      <h2>Last failovers</h2>
      {line === null ? (
        <div class="empty">
          <p>
            No route changed its connector. To see one move, type <code>sudo cpn drain</code> on a connector that has a
            standby, and then <code>sudo cpn drain --undo</code>
          </p>
        </div>
      ) : (
        <>
          <Timeline line={line} />
          <ol class="failovers">
            {last.map((event) => (
              <li key={event.id}>
                <Time at={event.at} />: {describeEvent(event)}
              </li>
            ))}
          </ol>
          <p>
            <a href={linkTo({ page: 'events', network: id })}>All events</a>
          </p>
        </>
      )}
    </>
  );
}

/** The current time, updated every 30 s. */
function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
