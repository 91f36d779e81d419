import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Network } from '../../contract/network.ts';
import type { Peer } from '../../contract/peer.ts';
import type { RemovalStatus } from '../../contract/removal.ts';
import { call } from '../client.ts';
import { describeLosses } from '../logic/peers/bulk.ts';
import { describePending } from '../logic/peers/describe-removal.ts';

interface LossesProps {
  readonly network: Network;
  readonly leaving: readonly Peer[];
}

export function Losses({ network, leaving }: LossesProps): JSX.Element {
  return (
    <>
      {describeLosses(network, leaving).map((loss) => (
        <p key={loss} class="problem">
          <span aria-hidden="true">✕ </span>
          {loss}
        </p>
      ))}
    </>
  );
}

const intervalMs = 5000;

/** The hosts that may still reach a removed peer, until they have applied the removal. */
export function PendingRemoval({ network: { id, revision } }: { readonly network: Network }): JSX.Element {
  const [status, setStatus] = useState<RemovalStatus | null>(null);
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      // The network shows connection problems.
      const found = await call<RemovalStatus>('GET', `api/networks/${id}/removals`).catch(() => null);
      if (isOver) return;
      setStatus(found);
      if (found !== null && found.pending.length > 0) timer = setTimeout(read, intervalMs);
    };
    void read();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [id, revision]);
  return (
    <div role="status">
      {status !== null && status.pending.length > 0 && <p class="problem">{describePending(status)}</p>}
    </div>
  );
}
