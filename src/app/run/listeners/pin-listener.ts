import type { PeerId } from '../../../core/map/model.ts';
import type { Pin } from '../../../core/pins/match-pins.ts';
import type { Joined } from '../../../store/state/state.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';

export class PinListener implements PassListener {
  readonly #tools: Pick<Tools, 'log'>;
  readonly #link: string;
  /** Null until the first pass. */
  #pins: readonly Pin[] | null = null;

  constructor(tools: Pick<Tools, 'log'>, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  onPass({ evaluation }: Pass): void {
    if (evaluation === null || evaluation.state.pins === this.#pins) return;
    if (this.#pins !== null) this.#logChanges(evaluation.state, this.#pins);
    this.#pins = evaluation.state.pins;
  }

  #logChanges({ membership, pins }: Joined, before: readonly Pin[]): void {
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
  accepted: 'the mismatch of a peer with its pin was accepted',
  proven: 'a peer proved a new key',
  reused: 'an address moved from one peer to another',
};
