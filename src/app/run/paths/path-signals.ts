import type { PathSignals as Statement } from '../../../contract/paths.ts';
import { CpnError, Unreachable } from '../../../core/errors/index.ts';
import type { PathEnd } from '../../../core/paths/direct-paths.ts';
import { accessOf } from '../../access.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';
import { withExtensions } from '../../service-features.ts';
import type { Tools } from '../../tools.ts';

const patience = { deadlineMs: 5_000, attempts: 2 } as const;
/** Milliseconds until a statement is repeated, which double from the first to the last. */
const pauses = { first: 500, last: 8_000 } as const;
/** Milliseconds to the control plane and back, until it was measured. */
const usualRoundTrip = 100;

/** The contract has no word for a path that a command removed. */
const statedEnds = { idle: 'idle', lost: 'lost', moved: 'moved', removed: 'moved' } as const;

/**
 * What this host states about direct paths. The other side of a path cannot reach this host until
 * it has an end of the path: ends are stated until the control plane has them.
 */
export class PathSignals {
  readonly #tools: Tools;
  readonly #evaluation: () => Evaluation | null;
  readonly #candidates: (evaluation: Evaluation) => Promise<string[] | null>;
  readonly #ends = new Map<number, PathEnd>();
  readonly #wanted = new Set<number>();
  #stop: AbortSignal = AbortSignal.abort();
  #move = new AbortController();
  #roundTrip = usualRoundTrip;
  #wake = () => {};

  /** @param candidates the endpoints of this host; null if it takes no direct paths */
  constructor(
    tools: Tools,
    evaluation: () => Evaluation | null,
    candidates: (evaluation: Evaluation) => Promise<string[] | null>,
  ) {
    this.#tools = tools;
    this.#evaluation = evaluation;
    this.#candidates = candidates;
  }

  /** Milliseconds to the control plane and back. */
  get roundTrip(): number {
    return this.#roundTrip;
  }

  /** States that the path to a peer ended. */
  end(peer: number, why: PathEnd): void {
    this.#ends.set(peer, why);
    this.#wake();
  }

  /** Requests a path from the present place. */
  want(peers: Iterable<number>): void {
    for (const peer of peers) this.#wanted.add(peer);
    this.#wake();
  }

  /** Drops what was to be stated about a peer: it has a path now. */
  settle(peer: number): void {
    this.#ends.delete(peer);
    this.#wanted.delete(peer);
  }

  /** Begins statements that are under way again: their connections may be dead. */
  move(): void {
    this.#move.abort();
    this.#move = new AbortController();
    this.#wake();
  }

  /** Repeats ends, and requests for paths, for as long as the control plane does not have them. */
  async run(signal: AbortSignal): Promise<void> {
    this.#stop = signal;
    signal.addEventListener('abort', () => this.#wake());
    let pause: number = pauses.first;
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      const evaluation = this.#evaluation();
      const [ends, wanted] = [[...this.#ends], [...this.#wanted]];
      if (evaluation === null || (ends.length === 0 && wanted.length === 0)) {
        await woken;
        continue;
      }
      const candidates = wanted.length === 0 ? null : await this.#candidates(evaluation);
      const isTaken = await this.send({
        ...(ends.length > 0 && { ended: ends.map(([peer, why]) => ({ peer, why: statedEnds[why] })) }),
        ...(candidates !== null && { wanted, candidates }),
      });
      if (isTaken) {
        for (const [peer, why] of ends) if (this.#ends.get(peer) === why) this.#ends.delete(peer);
        for (const peer of wanted) this.#wanted.delete(peer);
        pause = pauses.first;
        continue;
      }
      await Promise.race([woken, this.#tools.sleep(pause, signal)]);
      pause = Math.min(2 * pause, pauses.last);
    }
  }

  /** Sends a statement once. False if the control plane did not take it and may do so later. */
  async send(statement: Statement): Promise<boolean> {
    const evaluation = this.#evaluation();
    const access = evaluation && accessOf(evaluation.state);
    if (evaluation === null || access === null) return true;
    const { state } = evaluation;
    const signal = AbortSignal.any([this.#stop, this.#move.signal]);
    const start = this.#tools.monotonic();
    try {
      const isSent = await withExtensions(this.#tools, state, patience, (service) =>
        service.sendPathSignals(access.network, access.token, statement, signal),
      );
      const took = (this.#tools.monotonic() - start) * 1000;
      if (isSent) this.#roundTrip = Math.min(took, 2 * this.#roundTrip);
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      if (!(error instanceof CpnError)) throw error;
      const facts = { interface: state.interface, error: error.message };
      this.#tools.log.debug(facts, 'direct paths could not be signalled');
      return !(error instanceof Unreachable);
    }
  }
}
