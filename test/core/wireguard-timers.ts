/**
 * The timers of two ends of a tunnel, as drivers/net/wireguard/{timers,send,receive}.c have them, with no delay between the ends:
 * what each sends of itself, and what its counters and handshakes look like from outside.
 *
 * @module
 */

/** Bytes on the wire. */
const sizes = { data: 128, keepalive: 32, initiation: 148, response: 92 };

interface Session {
  readonly since: number;
  readonly by: End;
}

/** One end, with its view of the other one. */
export class End {
  readonly keepalive: number | null;
  isOff = false;
  rxBytes = 0;
  txBytes = 0;
  latestHandshake: number | null = null;
  #session: Session | null = null;
  #other: End | null = null;
  #persistentAt = Number.POSITIVE_INFINITY;
  #answerAt = Number.POSITIVE_INFINITY;
  #answersMore = false;
  #missingAt = Number.POSITIVE_INFINITY;
  #initiatedAt = Number.NEGATIVE_INFINITY;
  #initiatesUntil = Number.NEGATIVE_INFINITY;

  constructor(keepalive: number | null) {
    this.keepalive = keepalive;
  }

  static pair(one: number | null, other: number | null): readonly [End, End] {
    const ends = [new End(one), new End(other)] as const;
    ends[0].#other = ends[1];
    ends[1].#other = ends[0];
    return ends;
  }

  /** What is due by now. */
  tick(now: number): void {
    if (this.isOff) return;
    if (now >= this.#persistentAt) this.send(now, 'keepalive');
    if (now >= this.#answerAt) {
      const isMore = this.#answersMore;
      this.send(now, 'keepalive');
      if (isMore) this.#answerAt = now + 10;
      this.#answersMore = false;
    }
    if (now >= this.#missingAt) {
      this.#missingAt = Number.POSITIVE_INFINITY;
      this.#initiate(now);
    }
    if (now < this.#initiatesUntil && now - this.#initiatedAt >= 5) this.#initiate(now);
  }

  send(now: number, kind: 'data' | 'keepalive'): void {
    const session = this.#session;
    if (session === null || now - session.since >= 180) {
      this.#initiate(now);
      if (this.#session === session) return;
    }
    this.#count(now, sizes[kind]);
    this.#answerAt = Number.POSITIVE_INFINITY;
    if (kind === 'data') this.#missingAt = Math.min(this.#missingAt, now + 15);
    if (session?.by === this && now - session.since > 120) this.#initiate(now);
    if (this.#other !== null) this.#other.#receive(now, kind);
  }

  #receive(now: number, kind: 'data' | 'keepalive'): void {
    if (this.isOff) return;
    this.#hear(now, sizes[kind]);
    if (this.#session?.by === this && now - this.#session.since > 165) this.#initiate(now);
    if (kind === 'keepalive') return;
    if (this.#answerAt === Number.POSITIVE_INFINITY) this.#answerAt = now + 10;
    else this.#answersMore = true;
  }

  #initiate(now: number): void {
    if (now - this.#initiatedAt < 5) return;
    if (now >= this.#initiatesUntil) this.#initiatesUntil = now + 90;
    this.#initiatedAt = now;
    this.#count(now, sizes.initiation);
    const other = this.#other;
    if (other === null || other.isOff) return;
    other.#hear(now, sizes.initiation);
    other.#count(now, sizes.response);
    this.#hear(now, sizes.response);
    this.#initiatesUntil = now;
    for (const end of [this, other]) {
      end.#session = { since: now, by: this };
      end.latestHandshake = now;
    }
    this.send(now, 'keepalive');
  }

  #count(now: number, bytes: number): void {
    this.txBytes += bytes;
    this.#traversed(now);
  }

  #hear(now: number, bytes: number): void {
    this.rxBytes += bytes;
    this.#missingAt = Number.POSITIVE_INFINITY;
    this.#traversed(now);
  }

  #traversed(now: number): void {
    if (this.keepalive !== null) this.#persistentAt = now + this.keepalive;
  }
}
