import type { Context } from '../service/context.ts';
import type { Db } from '../store/tables.ts';
import { type JudgedNetwork, judgeNetwork, type LastSeen, type Observation } from './observe.ts';
import type { Presence } from './presence.ts';

/** Whether this process receives anything from the hosts of a network. */
interface Hearing {
  readonly isDeaf: boolean;
  /** When a host was heard again after none was. */
  readonly heardSince: number;
}

/** Judges what was observed of networks, by the requests that this process received too. */
export class Judge {
  readonly #context: Pick<Context, 'readTime' | 'steadyNow'>;
  readonly #presence: Pick<Presence, 'silenceOf'>;
  readonly #hearing = new Map<number, Hearing>();
  /** By the steady clock of this process. */
  #listeningSince: number;

  constructor(context: Pick<Context, 'readTime' | 'steadyNow'>, presence: Pick<Presence, 'silenceOf'>) {
    this.#context = context;
    this.#presence = presence;
    this.#listeningSince = context.steadyNow();
  }

  /** Notes that this process received nothing until now: silence before is not that of hosts. */
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
      // A first request that was stored after the observation was read is left to the next one, which shows it too.
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
    // The first host is back after an outage: the others get the time that they have after a start.
    this.#hearing.set(id, { isDeaf, heardSince: isDeaf ? heardSince : local });
    return isDeaf ? judged : judgeSince(local);
  }
}

const neverDeaf: Hearing = { isDeaf: false, heardSince: Number.NEGATIVE_INFINITY };
