import type { PathSignals } from '../../contract/paths.ts';
import type { PeerCaller } from '../domain/caller.ts';
import { NotFound } from '../errors.ts';
import type { FailureLog } from '../health/failure-log.ts';
import type { PeerMessages } from '../push/peer-messages.ts';
import { appendEvents } from '../service/append-events.ts';
import type { Context } from '../service/context.ts';
import { type AttemptCounts, createAttemptCounts } from '../service/peer-change-limit.ts';
import { requireAuthor } from '../service/require-author.ts';
import { makeNonce } from '../store/changes.ts';
import { reviseHealth } from '../store/health.ts';
import { lockNetwork } from '../store/networks.ts';
import type { Db } from '../store/tables.ts';
import { transact } from '../store/transact.ts';
import { announcePaths } from './announce-paths.ts';
import { type Awaited, conclude } from './conclude.ts';
import { receiveSignals } from './receive-signals.ts';
import { type Gathering, type Outcome, Round } from './round.ts';

interface DirectPathsOptions {
  /** Milliseconds in which all connectors observe the hosts of an attempt. */
  readonly gatherMs: number;
  /** The same for one connector, and for hosts, whose connection may just have died. */
  readonly longestGatherMs: number;
  readonly failures: Pick<FailureLog, 'note'>;
  /** The sockets of the control plane itself. */
  readonly ownSockets: () => ReadonlySet<string>;
}

/**
 * Brings pairs of hosts behind NAT to a direct path. All state is in the database: any process
 * serves any host, and only the end of a gathering has a timer, in the process that began it.
 */
export class DirectPaths {
  readonly #context: Context;
  readonly #messages: Pick<PeerMessages, 'store' | 'deliver'>;
  readonly #options: DirectPathsOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  #concluding: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(context: Context, messages: Pick<PeerMessages, 'store' | 'deliver'>, options: DirectPathsOptions) {
    this.#context = context;
    this.#messages = messages;
    this.#options = options;
  }

  /**
   * Applies what a host states about direct paths.
   * @throws NotFound if it is not in this network, Unauthenticated or Forbidden if it was removed
   */
  async receive(caller: PeerCaller, network: number, signals: PathSignals): Promise<void> {
    const { organizationId: organization } = caller;
    if (caller.networkId !== network) throw new NotFound('network');
    const counts = createAttemptCounts();
    const outcome = await transact(this.#context.db, async (transaction) => {
      counts.restart();
      const round = await this.#open(transaction, { network, organization });
      if (round === null) throw new NotFound('network');
      await requireAuthor(this.#context, transaction, caller);
      await round.prune();
      await receiveSignals(round, caller, signals);
      return this.#close(round, counts);
    });
    await this.#apply(network, outcome);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#concluding;
  }

  async #open(
    db: Db,
    { network: id, organization }: Pick<Gathering, 'network' | 'organization'>,
  ): Promise<Round | null> {
    const network = await lockNetwork(db, organization, id);
    if (network === undefined) return null;
    const now = (await this.#context.readTime(db)).getTime();
    const ownSockets = this.#options.ownSockets();
    return new Round({ db, network, organization, now, ownSockets });
  }

  /** Saves the pairs and the messages, and lets readers of the network's health see changes. */
  async #close(round: Round, counts: AttemptCounts): Promise<Outcome> {
    const { db, network } = round;
    const events = await announcePaths(this.#context, round, counts);
    const outcome = await round.close();
    await this.#messages.store(db, network.id, outcome.messages);
    if (events.length > 0) await appendEvents(this.#context, db, network.id, events);
    else if (outcome.isShown) {
      await reviseHealth(db, network.id, makeNonce(this.#context.random));
      await this.#context.announce(db, network.id, 'health');
    }
    return { ...outcome, isShown: outcome.isShown || events.length > 0 };
  }

  /** After the commit. */
  async #apply(network: number, { messages, begun, isShown }: Outcome): Promise<void> {
    if (isShown) this.#context.healthNotifier.notify(network);
    for (const gathering of begun) this.#schedule(gathering, 'one');
    if (messages.length > 0) await this.#messages.deliver(network);
  }

  /** Concludes a gathering later, which then awaits only this. */
  #schedule(gathering: Gathering, awaited: Awaited): void {
    if (this.#isStopped) return;
    const { gatherMs, longestGatherMs } = this.#options;
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        const note = (error: unknown) => this.#options.failures.note('direct paths', error);
        this.#concluding = this.#concluding.then(() => this.#conclude(gathering, awaited)).then(() => note(null), note);
      },
      awaited === 'one' ? gatherMs : longestGatherMs - gatherMs,
    );
    timer.unref();
    this.#timers.add(timer);
  }

  async #conclude(gathering: Gathering, awaited: Awaited): Promise<void> {
    const { network, a, b, attempt } = gathering;
    const counts = createAttemptCounts();
    const concluded = await transact(this.#context.db, async (transaction) => {
      counts.restart();
      const round = await this.#open(transaction, gathering);
      await round?.load([a, b]);
      const pair = round?.pairOf(a, b);
      if (!round || pair?.attempt !== attempt) return null;
      await conclude(round, pair, awaited);
      const isOpen = round.pairOf(a, b)?.state === 'gathering';
      return { outcome: await this.#close(round, counts), isOpen };
    });
    if (concluded === null) return;
    if (concluded.isOpen && awaited === 'one') this.#schedule(gathering, 'nothing');
    await this.#apply(network, concluded.outcome);
  }
}
