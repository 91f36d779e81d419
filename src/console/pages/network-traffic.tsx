import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Health } from '../../contract/health.ts';
import type { NetworkTraffic as Traffic } from '../../contract/traffic.ts';
import type { Reach } from '../logic/matrix/reach.ts';
import { findBusiest, hasTraffic, highestOf } from '../logic/network/rates.ts';
import { linkTo } from '../logic/page/route.ts';
import { Sparkline, useRates } from '../parts/charts/sparkline.tsx';
import { TrafficChart, TrafficLine } from '../parts/charts/traffic-chart.tsx';
import { Loading } from '../parts/request-state.tsx';
import { Table } from '../parts/table.tsx';
import { now } from '../parts/time.tsx';
import { useReading } from '../read.ts';

interface TrafficProps {
  readonly network: number;
  readonly health: Health;
  readonly reach: Reach;
}

const mostHosts = 10;
const everyMs = 60_000;

/** The traffic of the last 24 hours, and the busiest hosts; nothing from earlier versions. */
export function NetworkTraffic({ network, health, reach }: TrafficProps): JSX.Element {
  const { data, isRead } = useReading<Traffic>(`api/networks/${network}/traffic`, Math.floor(now.value / everyMs));
  const link = (id: number) => (
    <a href={linkTo({ page: 'peer', network, peer: id })}>{reach.byId.get(id)?.name ?? `peer ${id}`}</a>
  );
  if (!isRead) {
    return (
      <div aria-busy="true">
        <h2>Traffic of the last 24 hours</h2>
        <Loading />
      </div>
    );
  }
  if (data === null || !hasTraffic(data.total.received, data.total.sent)) {
    return <TrafficNow {...{ network, health, link }} />;
  }
  const most = highestOf(...data.busiest.flatMap(({ received, sent }) => [received, sent]));
  return (
    <>
      <h2>Traffic of the last 24 hours</h2>
      <TrafficChart {...data.total} />
      <Table
        label="Traffic"
        rows={data.busiest}
        keyOf={({ peer }) => peer}
        columns={[
          { title: 'Host', cell: ({ peer }) => link(peer) },
          { title: 'Received, mean', cell: ({ received }) => <TrafficLine rates={received} most={most} /> },
          { title: 'Sent, mean', cell: ({ sent }) => <TrafficLine rates={sent} most={most} /> },
        ]}
      />
      <p class="hint">
        The {data.busiest.length === 1 ? 'busiest host' : `${data.busiest.length} busiest hosts`}, by their reports. A
        packet from one host to another counts at both.
      </p>
    </>
  );
}

interface TrafficNowProps extends Omit<TrafficProps, 'reach'> {
  readonly link: (id: number) => JSX.Element;
}

function TrafficNow({ network, health, link }: TrafficNowProps): JSX.Element {
  const rates = useRates(network, health);
  const busiest = useMemo(() => findBusiest(rates, mostHosts), [rates]);
  return (
    <>
      <h2>Traffic</h2>
      {busiest.length === 0 ? (
        <div class="empty">
          <p>
            No host reports traffic yet. To see some, type <code>ping</code> and the address of another peer on a host.
          </p>
        </div>
      ) : (
        <>
          <Table
            label="Traffic"
            rows={busiest}
            keyOf={([id]) => id}
            columns={[
              { title: 'Host', cell: ([id]) => link(id) },
              { title: 'Receives', cell: ([, samples]) => <Sparkline samples={samples} of="received" /> },
              { title: 'Sends', cell: ([, samples]) => <Sparkline samples={samples} of="sent" /> },
            ]}
          />
          <p class="hint">The {mostHosts} busiest hosts, by their reports since this page was loaded.</p>
        </>
      )}
    </>
  );
}
