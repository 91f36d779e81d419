import type { ComponentChildren, JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Event } from '../../contract/event.ts';
import type { Health } from '../../contract/health.ts';
import type { Network } from '../../contract/network.ts';
import { describeEvent } from '../../core/events/describe-event.ts';
import { listNames } from '../../core/util/list-names.ts';
import { findLastEvents, summarizeNetwork, type Trouble } from '../logic/network/summarize.ts';
import { linkTo } from '../logic/page/route.ts';
import { State, Verdict } from './state.tsx';
import { Time } from './time.tsx';

interface SummaryProps {
  readonly network: Network;
  readonly health: Health;
  /** Null before the first reply. */
  readonly events: readonly Event[] | null;
}

const mostTroubles = 6;
const mostEvents = 5;

export function Summary({ network, health, events }: SummaryProps): JSX.Element {
  const { counts, routes, troubles } = useMemo(() => summarizeNetwork(network, health), [network, health]);
  const last = useMemo(() => findLastEvents(events ?? [], mostEvents), [events]);
  const peers = (state: string) => linkTo({ page: 'peers', network: network.id }, { state });
  const hidden = troubles.length - mostTroubles;
  return (
    <section class="summary" aria-label="Summary">
      <div class="panel">
        <h2>{troubles.length === 0 ? 'Nothing is down' : countTroubles(troubles)}</h2>
        <ul class="troubles">
          {troubles.slice(0, mostTroubles).map((trouble) => (
            <li key={keyOf(trouble)}>
              <TroubleLine network={network.id} trouble={trouble} />
            </li>
          ))}
        </ul>
        {hidden > 0 && (
          <p>
            <a href={peers('offline')}>{hidden} more</a>
          </p>
        )}
        <dl class="figures">
          {(['online', 'offline', 'unknown'] as const).map((state) => (
            <Figure key={state} name={<Verdict state={state} />}>
              <a href={peers(state)}>
                {counts[state]}
                <span class="hidden"> {state} peers</span>
              </a>
            </Figure>
          ))}
          <Figure name="peers">
            <a href={linkTo({ page: 'peers', network: network.id })}>{network.peers.length}</a>
          </Figure>
          {network.routes.length > 0 && (
            <Figure name="routes up">
              {routes.up} of {network.routes.length}
            </Figure>
          )}
          <Figure name="range">
            <code>{network.private_cidr}</code>
          </Figure>
        </dl>
      </div>
      {last.length > 0 && (
        <div class="panel">
          <h2>Last events</h2>
          <ul class="events">
            {last.map((event) => (
              <li key={event.id}>
                <Time at={event.at} />
                <span>{describeEvent(event)}</span>
              </li>
            ))}
          </ul>
          <p>
            <a href={linkTo({ page: 'events', network: network.id })}>All events</a>
          </p>
        </div>
      )}
    </section>
  );
}

interface FigureProps {
  readonly name: ComponentChildren;
  readonly children: ComponentChildren;
}

function Figure({ name, children }: FigureProps): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function countTroubles({ length }: readonly Trouble[]): string {
  return length === 1 ? '1 thing needs attention' : `${length} things need attention`;
}

function keyOf(trouble: Trouble): string {
  return `${trouble.kind} ${'peer' in trouble ? trouble.peer.id : trouble.route}`;
}

interface TroubleProps {
  readonly network: number;
  readonly trouble: Trouble;
}

function TroubleLine({ network, trouble }: TroubleProps): JSX.Element {
  const link = ({ id, name }: { readonly id: number; readonly name: string }) => (
    <a href={linkTo({ page: 'peer', network, peer: id })}>{name}</a>
  );
  switch (trouble.kind) {
    case 'dead-route':
      return (
        <>
          <Verdict state="dead" /> <code>{trouble.route}</code> is dead: {trouble.why}
        </>
      );
    case 'unknown-route':
      return (
        <>
          <Verdict state="unknown" /> <code>{trouble.route}</code> is not known to work: {trouble.why}
        </>
      );
    case 'offline':
      return (
        <>
          <Verdict state="offline" /> {link(trouble.peer)}: {trouble.why}
        </>
      );
    case 'failing':
      return (
        <>
          <State state="down" text="failing" /> {link(trouble.peer)} fails to reconcile: {trouble.why}
        </>
      );
    case 'silent-connector':
      return (
        <>
          <State state="never" text="never answered:" /> {link(trouble.peer)}, a connector.{' '}
          {trouble.routes.length === 0 ? 'It serves no route.' : `It cannot take over ${listNames(trouble.routes)}.`}
        </>
      );
    case 'no-standby':
      return (
        <>
          <State state="stale" text="no standby" /> <code>{trouble.route}</code> has {link(trouble.connector)} alone: no
          other connector of it answers.
        </>
      );
  }
}
