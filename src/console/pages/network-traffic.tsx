import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Health } from '../../contract/health.ts';
import type { Reach } from '../logic/matrix/reach.ts';
import { findBusiest } from '../logic/network/rates.ts';
import { linkTo } from '../logic/page/route.ts';
import { Sparkline } from '../parts/sparkline.tsx';
import { Table } from '../parts/table.tsx';
import { useRates } from '../rates.ts';

interface TrafficProps {
  readonly network: number;
  readonly health: Health;
  readonly reach: Reach;
}

const mostHosts = 10;

/** The hosts with the most traffic. */
export function NetworkTraffic({ network, health, reach }: TrafficProps): JSX.Element {
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
              {
                title: 'Host',
                cell: ([id]) => (
                  <a href={linkTo({ page: 'peer', network, peer: id })}>{reach.byId.get(id)?.name ?? `peer ${id}`}</a>
                ),
              },
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
