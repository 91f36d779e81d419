import type { NetworkMap, PeerId } from '../map/model.ts';
import type { KnownPeer, Pin } from './match-pins.ts';

/** A peer whose data from the service differs from its pin. */
export interface PinMismatch {
  /** Its name at the service. */
  readonly name: string;
  readonly pin: Pin;
  readonly claimed: KnownPeer;
}

/** The mismatches of a map that no operator has accepted yet, in the order of the pins. */
export function findPinMismatches(map: NetworkMap, pins: readonly Pin[]): PinMismatch[] {
  const mismatches = pins.flatMap((pin) => (pin.claimed ? [{ pin, claimed: pin.claimed }] : []));
  if (mismatches.length === 0) return [];
  const names = new Map<PeerId, string>(map.peers.map(({ id, name }) => [id, name]));
  return mismatches.map((mismatch) => ({
    name: names.get(mismatch.claimed.peer) ?? `peer ${mismatch.claimed.peer}`,
    ...mismatch,
  }));
}

/** The differences from the pin, as in `key B instead of A`. */
export function describeDifference({ pin, claimed }: Pick<PinMismatch, 'pin' | 'claimed'>): string {
  // If a service sends no ids, the id is the key, which is already described.
  const goesByKey = pin.peer === pin.publicKey && claimed.peer === claimed.publicKey;
  const differences = [
    claimed.publicKey === pin.publicKey ? [] : `key ${claimed.publicKey} instead of ${pin.publicKey}`,
    claimed.address === pin.address ? [] : `address ${claimed.address} instead of ${pin.address}`,
    claimed.peer === pin.peer || goesByKey ? [] : `id ${claimed.peer} instead of ${pin.peer}`,
    pin.identity === null || claimed.identity === null || claimed.identity === pin.identity
      ? []
      : `identity ${claimed.identity} instead of ${pin.identity}`,
  ];
  return differences.flat().join(', ');
}

export function acceptCommand(address: string, link: string): string {
  return `cpn accept ${address} ${link}`;
}
