import { CpnError } from '../../../core/errors/index.ts';
import type { PacketPaths } from '../../../core/forward/foreign/foreign-drops.ts';
import type { Prefix } from '../../../core/net/cidr.ts';
import { catalogue } from '../../../core/problems/problem.ts';
import { sameData } from '../../../core/util/same-data.ts';
import type { HostEvent } from '../../../host/host.ts';
import { findDropProblems, findDrops, findPaths } from '../../lan/foreign-drops.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import { ProblemLog, TransitionLogger } from '../transition-logger.ts';

/** A pass may be a fifth early, and still counts. */
const leeway = 0.75;
/** Intervals between checks of a host that does not forward, while nothing is dropped. */
const calm = 10;
/** Seconds between checks after changes. */
const rest = 10;
/** Seconds a drop must last: a program that loads its rules again may drop all for a moment. */
const lasting = 5;

/**
 * Checks whether foreign packet rules drop packets to forward, or to the listen port, and logs
 * transitions. A check costs a process. It runs at intervals, and after packet rules or paths
 * changed; after other changes, at most once in `rest` seconds.
 */
export class DropListener implements PassListener {
  readonly #tools: Pick<Tools, 'host' | 'store' | 'monotonic'>;
  readonly #link: string;
  /** Seconds. */
  readonly #pause: number;
  readonly #trigger: (inMs: number) => void;
  readonly #log: ProblemLog;
  readonly #unread: TransitionLogger;
  /** The value in the notes; undefined before the first check. */
  #noted: boolean | undefined;
  /** The paths of the last check. */
  #paths: PacketPaths | null = null;
  /** The dropped routes, each with its reason and its first observation. */
  #routes: ReadonlyMap<Prefix, { readonly reason: string; readonly since: number }> = new Map();
  #checkedAt = 0;
  #due = 0;

  /**
   * @param interval roughly the seconds between two checks without another trigger
   * @param trigger starts a pass after so many milliseconds
   */
  constructor(tools: Tools, link: string, interval: number, trigger: (inMs: number) => void) {
    this.#trigger = trigger;
    this.#tools = tools;
    this.#link = link;
    this.#pause = interval * leeway;
    this.#log = new ProblemLog(tools.log);
    const { title } = catalogue['rules-unread'];
    this.#unread = new TransitionLogger(tools.log, { interface: link }, { begins: title, ends: `over: ${title}` });
  }

  /** The routes that lost all packets for `lasting` seconds, each with the reason. */
  get routes(): ReadonlyMap<Prefix, string> {
    const lastingOnes = [...this.#routes].filter(([, { since }]) => this.#checkedAt - since >= lasting);
    return new Map(lastingOnes.map(([route, { reason }]) => [route, reason]));
  }

  onEvent({ kind }: HostEvent): boolean {
    if (kind === 'firewall') this.#due = 0;
    return false;
  }

  /** Checks if a check is due. A network that is down has no drops. */
  async onPass({ evaluation, changes }: Pass): Promise<void> {
    const paths = evaluation && findPaths(evaluation);
    if (!sameData(paths, this.#paths)) this.#due = 0;
    if (changes.length > 0) this.#due = Math.min(this.#due, this.#checkedAt + rest);
    this.#paths = paths;
    const now = this.#tools.monotonic();
    if (evaluation !== null && now < this.#due) return;
    this.#checkedAt = now;
    const soon = now + this.#pause;
    // First, so that an event during the check makes another one due.
    this.#due = evaluation?.desired.isConnector ? soon : now + this.#pause * calm;
    try {
      const { forward, routes, inbound } = evaluation === null ? none : await findDrops(this.#tools, evaluation);
      this.#noteRoutes(routes, now);
      this.#unread.update(null);
      this.#log.update(findDropProblems(this.#link, forward, inbound));
      await this.#note(inbound !== null);
      if (inbound !== null) this.#due = Math.min(this.#due, soon);
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      this.#due = Math.min(this.#due, soon);
      this.#unread.update(error);
    }
  }

  /** A new drop counts once the next check, `lasting` seconds later, finds it too. */
  #noteRoutes(routes: ReadonlyMap<Prefix, string>, now: number): void {
    const since = (route: Prefix) => this.#routes.get(route)?.since ?? now;
    this.#routes = new Map([...routes].map(([route, reason]) => [route, { reason, since: since(route) }]));
    if (![...routes.keys()].some((route) => now - since(route) < lasting)) return;
    this.#due = Math.min(this.#due, now + lasting);
    this.#trigger(1000 * lasting);
  }

  /** `cpn status` reads the rules only if this note gives a reason. */
  async #note(isDropped: boolean): Promise<void> {
    if (this.#noted === isDropped) return;
    await this.#tools.store.amendNotes(this.#link, { inboundDropped: isDropped });
    this.#noted = isDropped;
  }
}

const none = { forward: [], routes: new Map<Prefix, string>(), inbound: null };
