import type { JSX } from 'preact';
import type { Network } from '../../contract/network.ts';
import type { Peer } from '../../contract/peer.ts';
import { describeLosses } from '../logic/peers/bulk.ts';

interface LossesProps {
  readonly network: Network;
  readonly leaving: readonly Peer[];
}

/** Warns of the consequences of removing peers. */
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
