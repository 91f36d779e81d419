import { describeDifference, findClaims } from '../../core/claims.ts';
import type { PeerId, Pin } from '../../core/model.ts';
import type { Joined } from '../../store/state.ts';
import type { Tools } from '../tools.ts';

/** Tells the log of peers that are not those they were: of each claim once, and when a peer's key is another in earnest. */
export class PinWatch {
  readonly #tools: Tools;
  readonly #link: string;
  /** Null until there was a first look at the network. */
  #pins: readonly Pin[] | null = null;
  #told: ReadonlySet<string> = new Set();

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  /** Takes one more look into account. */
  follow(state: Joined): void {
    if (state.pins === this.#pins) return;
    this.#tellClaims(state);
    if (this.#pins !== null) this.#tellChanges(state, this.#pins);
    this.#pins = state.pins;
  }

  #tellClaims({ membership, pins, options }: Joined): void {
    const claims = findClaims(membership.map, pins);
    const told = new Set<string>();
    for (const { name, pin, claimed } of claims) {
      const difference = describeDifference({ pin, claimed });
      const said = `${claimed.peer}: ${difference}`;
      told.add(said);
      if (this.#told.has(said)) continue;
      const facts = {
        interface: this.#link,
        peer: claimed.peer,
        name,
        address: pin.address,
        known_key: pin.publicKey,
        claimed_key: claimed.publicKey,
        difference,
        pin: options.pin,
      };
      this.#tools.log.warn(facts, options.pin === 'strict' ? messages.held : messages.changed);
    }
    this.#told = told;
  }

  #tellChanges({ membership, pins }: Joined, before: readonly Pin[]): void {
    const known = new Map<PeerId, Pin>(before.map((pin) => [pin.claimed?.peer ?? pin.peer, pin]));
    const held = new Map(before.map((pin) => [pin.address, pin]));
    const names = new Map(membership.map.peers.map(({ id, name }) => [id, name]));
    for (const pin of pins) {
      const earlier = known.get(pin.peer);
      const other = earlier ?? held.get(pin.address);
      if (other === undefined || other.publicKey === pin.publicKey || pin.claimed !== null) continue;
      const { peer, address, publicKey } = pin;
      const facts = { interface: this.#link, peer, name: names.get(peer), address, key: publicKey };
      const wasClaimed = other.claimed?.publicKey === publicKey;
      if (earlier === undefined) this.#tools.log.warn({ ...facts, known_key: other.publicKey }, messages.reused);
      else this.#tools.log.info(facts, wasClaimed ? messages.accepted : messages.proven);
    }
  }
}

const messages = {
  held: 'a peer is said to be another than the one known, without its own word for it; it is held to what it was known by',
  changed: 'a peer is said to be another than the one known, without its own word for it; it is used all the same',
  accepted: 'what is said of a peer was accepted',
  proven: 'a peer has a new key, by its own word',
  reused: 'an address has gone from one peer to another',
};
