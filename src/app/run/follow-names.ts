import { isRenewed } from '../../core/health.ts';
import type { Resolved } from '../../core/resolved.ts';
import type { Joined } from '../../store/state.ts';
import { namesOf, resolveNames } from '../resolve.ts';
import type { Survey } from '../survey.ts';
import { secondsNow, type Tools } from '../tools.ts';

/** Seconds after which a name is asked for although nothing speaks against its addresses. */
const renewal = 600;

/** Resolves the names of a network anew when there is reason to. */
export class NameFollower {
  readonly #tools: Tools;
  /** Seconds between two questions for the same name, at the least. */
  readonly #interval: number;
  /** When each name was asked for last, in seconds of the monotonic clock. */
  readonly #asked = new Map<string, number>();
  #busy = false;

  constructor(tools: Tools, interval: number) {
    this.#tools = tools;
    this.#interval = interval;
  }

  /** Every name may lead elsewhere now. */
  forget(): void {
    this.#asked.clear();
  }

  /** Asks for the names that are due, and returns what is known of all of them; null where nothing is new. */
  async follow(seen: Survey): Promise<Resolved | null> {
    const due = this.#findDue(seen);
    if (due.size === 0 || this.#busy) return null;
    this.#busy = true;
    try {
      for (const name of due) this.#asked.set(name, this.#tools.monotonic());
      const resolved = await resolveNames(this.#tools, seen.state, due);
      return resolved === seen.state.resolved ? null : resolved;
    } finally {
      this.#busy = false;
    }
  }

  /** A name whose peers were heard lately is left alone for long: where they are found is where they are. */
  #findDue({ state, actual }: Survey): Set<string> {
    const now = secondsNow(this.#tools);
    const quiet = namesOfQuietPeers(state, (publicKey) => {
      const peer = actual.device?.peers.find((each) => each.publicKey === publicKey);
      return peer !== undefined && isRenewed(peer.latestHandshake, now);
    });
    const names = namesOf(state);
    const isKnown = new Set(names);
    for (const name of this.#asked.keys()) if (!isKnown.has(name)) this.#asked.delete(name);
    const due = names.filter((name) => {
      const pause = quiet.has(name) || state.resolved[name] === undefined ? this.#interval : renewal;
      const asked = this.#asked.get(name);
      return asked === undefined || this.#tools.monotonic() - asked >= pause;
    });
    return new Set(due);
  }
}

function namesOfQuietPeers({ membership }: Joined, isHeard: (publicKey: string) => boolean): Set<string> {
  return new Set(
    membership.map.peers
      .filter((peer) => peer.endpoint !== null && !isHeard(peer.publicKey))
      .map((peer) => peer.endpoint?.host ?? ''),
  );
}
