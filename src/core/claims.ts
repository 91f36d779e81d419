import type { Known, NetworkMap, PeerId, Pin, PinRule } from './model.ts';

/** A peer of which the service says another thing than what it is known by. */
export interface Claim {
  /** As the service calls it. */
  readonly name: string;
  readonly pin: Pin;
  readonly claimed: Known;
}

/** What nobody accepted yet of what a map says, in the order of the pins. */
export function findClaims(map: NetworkMap, pins: readonly Pin[]): Claim[] {
  const claims = pins.flatMap((pin) => (pin.claimed ? [{ pin, claimed: pin.claimed }] : []));
  if (claims.length === 0) return [];
  const names = new Map<PeerId, string>(map.peers.map(({ id, name }) => [id, name]));
  return claims.map((claim) => ({ name: names.get(claim.claimed.peer) ?? `peer ${claim.claimed.peer}`, ...claim }));
}

/** What is told otherwise than it is known, as in `key B instead of A`. */
export function describeDifference({ pin, claimed }: Pick<Claim, 'pin' | 'claimed'>): string {
  const told = [
    claimed.publicKey === pin.publicKey ? [] : `key ${claimed.publicKey} instead of ${pin.publicKey}`,
    claimed.address === pin.address ? [] : `address ${claimed.address} instead of ${pin.address}`,
    isOtherId(pin, claimed) ? `id ${claimed.peer} instead of ${pin.peer}` : [],
    pin.identity === null || claimed.identity === null || claimed.identity === pin.identity
      ? []
      : `identity ${claimed.identity} instead of ${pin.identity}`,
  ];
  return told.flat().join(', ');
}

/** A sentence for a person: what is told, what becomes of it, and what to do. */
export function describeClaim(claim: Claim, rule: PinRule, link: string): string {
  const { name, pin } = claim;
  const told = `${name} (${pin.address}) is said to have ${describeDifference(claim)}, without its own word for it`;
  const used = rule === 'strict' ? 'it is held to what it was known by' : 'it is used all the same';
  return `${told}; ${used}; find out who changed it, and if it is right, "${acceptance(claim, link)}"`;
}

/** The command that accepts it. */
export function acceptance({ pin }: Pick<Claim, 'pin'>, link: string): string {
  return `cpn accept ${pin.address} ${link}`;
}

/** Where a service tells no ids a peer goes by its key, of which enough is said. */
function isOtherId(pin: Known, claimed: Known): boolean {
  return claimed.peer !== pin.peer && !(pin.peer === pin.publicKey && claimed.peer === claimed.publicKey);
}
