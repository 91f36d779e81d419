import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Event, EventType } from '../../contract/event.ts';
import { describeEvent, eventTypes } from '../../core/events/describe-event.ts';
import { eventSource, useLive } from '../live.ts';
import { linkTo } from '../logic/page/route.ts';
import { Choice } from '../parts/forms/form.tsx';
import { NetworkFrame } from '../parts/network-frame.tsx';
import { Loading, Problem } from '../parts/request-state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';

export function NetworkEventsPage({ id }: { readonly id: number }): JSX.Element {
  return (
    <NetworkFrame id={id} title="events">
      {() => <Events id={id} />}
    </NetworkFrame>
  );
}

type ShownEvents = EventType | 'all';

const choices: readonly (readonly [ShownEvents, string])[] = [
  ['all', 'all'],
  ...(Object.entries(eventTypes) as [EventType, string][]),
];

function Events({ id }: { readonly id: number }): JSX.Element {
  const { data, problem } = useLive(eventSource(id));
  const [type, setType] = useState<ShownEvents>('all');
  const events = data ?? [];
  const found = useMemo(
    () => events.filter((event) => type === 'all' || event.type === type).toReversed(),
    [events, type],
  );
  const columns = useMemo(() => listColumns(id), [id]);
  return (
    <div aria-busy={data === null && problem === null}>
      <Problem text={problem} />
      {data === null && problem === null && <Loading />}
      {data !== null && events.length === 0 && (
        <div class="empty">
          <p>
            Nothing happened yet. Events are kept for 30 days. To follow them in a terminal, type{' '}
            <code>cpn events {id} --follow</code>
          </p>
        </div>
      )}
      {events.length > 0 && (
        <>
          <div class="search">
            <Choice<ShownEvents> label="Type" name="type" value={type} onChange={setType} options={choices} />
            <p aria-live="polite">
              {found.length} of the last {events.length} events
            </p>
          </div>
          {found.length === 0 ? (
            <div class="empty">
              <p>
                No event of this type is among them. For older ones, type{' '}
                <code>
                  cpn events {id} --type {type} --after 0 --limit 10000
                </code>
              </p>
            </div>
          ) : (
            <Table label="Events" columns={columns} rows={found} keyOf={(event) => event.id} />
          )}
        </>
      )}
    </div>
  );
}

function listColumns(network: number): readonly Column<Event>[] {
  return [
    { title: 'When', cell: ({ at }) => <Time at={at} /> },
    { title: 'What happened', cell: describeEvent },
    { title: 'Type', cell: ({ type }) => eventTypes[type] ?? type },
    {
      title: 'Peer',
      cell: ({ peer }) =>
        peer === null ? '–' : <a href={linkTo({ page: 'peer', network, peer: peer.id })}>{peer.name}</a>,
    },
  ];
}
