import type { NetworkStatus, PeerStatus } from '../../app/status/network-status.ts';
import type { Rates } from './show-status.ts';

interface Reading {
  readonly rxBytes: number;
  readonly txBytes: number;
}

/**
 * A meter that is read again and again, and tells how fast the counters of each peer grew since it was read last.
 *
 * The function returned takes the networks and the time, in seconds of a clock that never jumps.
 */
export function rateMeter() {
  let last: { readonly at: number; readonly readings: ReadonlyMap<string, Reading> } | null = null;
  return (networks: readonly Pick<NetworkStatus, 'interface' | 'peers'>[], at: number) => {
    const before = last;
    const named = networks.flatMap(({ interface: link, peers }) =>
      peers.map((peer): [string, Reading] => [nameOf(link, peer), peer]),
    );
    last = { at, readings: new Map(named) };
    return (link: string, peer: PeerStatus): Rates => {
      const known = before?.readings.get(nameOf(link, peer));
      const seconds = at - (before?.at ?? at);
      return {
        received: growth(known?.rxBytes, peer.rxBytes, seconds),
        sent: growth(known?.txBytes, peer.txBytes, seconds),
      };
    };
  };
}

/** Counters that grew smaller are those of a peer that was taken out and added again. */
function growth(before: number | undefined, now: number, seconds: number): number | null {
  return before === undefined || now < before || seconds <= 0 ? null : (now - before) / seconds;
}

function nameOf(link: string, { publicKey }: Pick<PeerStatus, 'publicKey'>): string {
  return `${link} ${publicKey}`;
}
