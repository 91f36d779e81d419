import type { Context } from '../service/context.ts';
import type { Db } from '../store/tables.ts';
import { type JudgedNetwork, judgeNetwork, type LastSeen, type Observation } from './observe.ts';
import type { Presence } from './presence.ts';

/** The state of reception from the hosts of a network. */
interface Hearing {
  readonly isDeaf: boolean;
  /** When a first host made a request after an outage of all hosts. */
  readonly heardSince: number;
}

/** Judges observed networks, from stored requests and the requests that this process received. */
export class Judge {
  readonly #context: Pick<Context, 'readTime' | 'steadyNow'>;
  readonly #presence: Pick<Presence, 'silenceOf'>;
  readonly #hearing = new Map<number, Hearing>();
  /** The start of reception, by the steady clock of this process. */
  #listeningSince: number;

  constructor(context: Pick<Context, 'readTime' | 'steadyNow'>, presence: Pick<Presence, 'silenceOf'>) {
    this.#context = context;
    this.#presence = presence;
    this.#listeningSince = context.steadyNow();
  }

  /** Restarts reception. This process received nothing until now, so no earlier silence counts. */
  listenAgain(): void {
    this.#listeningSince = this.#context.steadyNow();
  }

  forget(network: number): void {
    this.#hearing.delete(network);
  }

  async judge(db: Db, observation: Observation): Promise<JudgedNetwork> {
    const { id } = observation.network;
    const local = this.#context.steadyNow();
    const now = (await this.#context.readTime(db)).getTime();
    const { isDeaf: wasDeaf, heardSince } = this.#hearing.get(id) ?? neverDeaf;
    const lastSeen: LastSeen = ({ peer, health }) => {
      const silence = this.#presence.silenceOf(peer.id);
      const instants = [health?.last_seen, health?.reported_at].flatMap((at) => (at ? [Date.parse(at)] : []));
      // A first request that was stored after this observation belongs to the next observation.
      if (silence !== null && health?.last_seen) instants.push(now - silence);
      return instants.length === 0 ? null : Math.max(...instants);
    };
    const judgeSince = (since: number) =>
      judgeNetwork(observation, lastSeen, now, now - (local - Math.max(this.#listeningSince, since)));
    const judged = judgeSince(heardSince);
    const isDeaf = observation.peers.some(
      ({ peer, health }) => health?.announced === 'online' && judged.peers.get(peer.id)?.state === 'unknown',
    );
    if (isDeaf === wasDeaf) return judged;
    // The first host is back after an outage. The others get the same time as after a start.
    this.#hearing.set(id, { isDeaf, heardSince: isDeaf ? heardSince : local });
    return isDeaf ? judged : judgeSince(local);
  }
}

const neverDeaf: Hearing = { isDeaf: false, heardSince: Number.NEGATIVE_INFINITY };
