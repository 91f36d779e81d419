import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Network } from '../../../contract/network.ts';
import type { ReachablePairs } from '../../../contract/rules.ts';
import { describeTrafficOf, type Traffic, toTrafficQuery } from '../../logic/matrix/access.ts';
import { linkTo } from '../../logic/page/route.ts';
import { modeTexts } from '../../logic/rules/describe-rules.ts';
import { useReading, useSettled } from '../../read.ts';
import { Choice, Field } from '../forms/form.tsx';
import { Loading, Problem } from '../request-state.tsx';
import { Table } from '../table.tsx';

interface WhoReachesProps {
  readonly network: Network;
  /** The selector of one peer or route. */
  readonly to: string;
}

/** The peers and routes that the rules let reach a peer or a route. */
export function WhoReaches({ network, to }: WhoReachesProps): JSX.Element {
  const [traffic, setTraffic] = useState<Traffic>({ protocol: 'tcp', port: '443' });
  const port = useSettled(traffic.port);
  const shown = { ...traffic, port };
  const query = toTrafficQuery(shown, { to });
  return (
    <>
      <OpenNote network={network} />
      <TrafficFields traffic={traffic} onChange={setTraffic} />
      {query === null ? (
        <p class="hint">Type a port from 1 to 65535.</p>
      ) : (
        <Senders key={query} {...{ network, query }} text={describeTrafficOf(shown)} />
      )}
    </>
  );
}

interface SendersProps {
  readonly network: Network;
  readonly query: string;
  readonly text: string;
}

function Senders({ network, query, text }: SendersProps): JSX.Element {
  const path = `api/networks/${network.id}/rules/reach?${query}`;
  const { data, isRead, problem } = useReading<ReachablePairs>(path, network.revision);
  return (
    <div aria-busy={!isRead}>
      {!isRead && <Loading />}
      <Problem text={problem} />
      {data !== null && data.pairs.length === 0 && (
        <div class="empty">
          <p>No peer or route may reach it with {text}.</p>
        </div>
      )}
      {data !== null && data.pairs.length > 0 && (
        <Table
          label={`Who may reach it with ${text}`}
          rows={data.pairs}
          keyOf={({ from, to }) => `${from} ${to}`}
          columns={[
            { title: 'From', cell: ({ from }) => <code>{from}</code> },
            { title: 'To', cell: ({ to }) => <code>{to}</code> },
            { title: 'Rule', cell: ({ rule }) => rule ?? 'none: the network is open' },
          ]}
        />
      )}
      {data?.complete === false && <p class="hint">There are more. The first {data.pairs.length} are shown.</p>}
    </div>
  );
}

interface TrafficFieldsProps {
  readonly traffic: Traffic;
  readonly onChange: (traffic: Traffic) => void;
}

/** The protocol and the port of the connections that are shown. */
function TrafficFields({ traffic, onChange }: TrafficFieldsProps): JSX.Element {
  return (
    <div class="columns">
      <Choice<Traffic['protocol']>
        label="Protocol"
        name="protocol"
        value={traffic.protocol}
        options={[
          ['tcp', 'TCP'],
          ['udp', 'UDP'],
          ['icmp', 'ICMP'],
        ]}
        onChange={(protocol) => onChange({ ...traffic, protocol })}
      />
      {traffic.protocol !== 'icmp' && (
        <Field
          label="Port"
          name="port"
          type="number"
          value={traffic.port}
          onChange={(port) => onChange({ ...traffic, port })}
        />
      )}
    </div>
  );
}

/** In an open network: that it is open, and how to close it. */
export function OpenNote({ network: { id, rules } }: { readonly network: Network }): JSX.Element | null {
  if (rules !== undefined) return null;
  return (
    <p>
      {modeTexts.open} To close it, go to <a href={linkTo({ page: 'rules', network: id })}>Rules</a>.
    </p>
  );
}
