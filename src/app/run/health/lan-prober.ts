import { CpnError } from '../../../core/errors/index.ts';
import {
  findRouteTo,
  initialLanHealth,
  type LanHealth,
  type Probe,
  trackLanHealth,
} from '../../../core/health/lan-health.ts';
import type { Address } from '../../../core/net/cidr.ts';
import { catalogue } from '../../../core/problems/problem.ts';
import type { Joined } from '../../../store/state/state.ts';
import type { Notes } from '../../../store/store.ts';
import { findLan, type Lan, type LanTarget } from '../../lan/lan.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import { CoalescingTimer } from '../coalescing.ts';
import type { PassListener } from '../pass-listener.ts';
import { TransitionLogger } from '../transition-logger.ts';

/** Milliseconds: between starts of rounds, the least pause after one, the timeout of a probe. */
const every = 2_000;
const rest = 500;
const deadline = 1_500;

/** The result of a probe, or why it failed. */
interface ProbeOutcome extends Probe {
  readonly noted: Notes['probed'][string] | null;
  readonly error: CpnError | null;
}

/** Probes the LANs behind a connector, and records the routes behind which no target answers. */
export class LanProber implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #trigger: () => void;
  readonly #transitions: TransitionLogger;
  readonly #finder: ProbeTargetFinder;
  readonly #timer = new CoalescingTimer();
  #lan: Lan | null = null;
  /** Null before the first pass. */
  #health: LanHealth | null = null;
  #noted: Pick<Notes, 'dead' | 'probed'> = { dead: [], probed: {} };

  /** @param trigger starts a pass; called when the set of dead routes changes */
  constructor(tools: Tools, link: string, trigger: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#trigger = trigger;
    this.#finder = new ProbeTargetFinder(tools);
    const messages = { begins: 'a probe failed', ends: 'probes succeed again' };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  /** At the first pass, withdrawn routes count as dead until their LAN answers. */
  async onPass({ evaluation }: Pass): Promise<void> {
    this.#lan = evaluation && findLan(evaluation.state);
    if (evaluation === null) return;
    const { state } = evaluation;
    if (this.#health === null) await this.#begin(state);
    else if (this.#lan === null) await this.#set(initialLanHealth(), {});
    if (this.#lan !== null) this.#timer.schedule();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { sleep, monotonic } = this.#tools;
    while (!signal.aborted) {
      await this.#timer.next(signal);
      while (this.#lan !== null && !signal.aborted) {
        const began = monotonic();
        await this.#round(this.#lan.targets).catch((error) => void this.#transitions.update(error));
        await sleep(Math.max(rest, every - 1000 * (monotonic() - began)), signal);
      }
    }
  }

  /** The map has routes withdrawn before this process started; the notes have unreported ones. */
  async #begin(state: Joined): Promise<void> {
    const { dead, probed } = await this.#tools.store.readNotes(this.#link);
    this.#noted = { dead, probed };
    const { served, self } = this.#lan ?? { served: [], self: null };
    const routes = served.map(({ route }) => route);
    // A drained connector has all routes out of service, in any health of its LANs.
    const withdrawn = state.drained ? [] : (self?.withdrawn ?? []);
    const known = routes.filter((route) => dead.includes(route) || withdrawn.includes(route));
    if (known.length > 0) {
      this.#tools.log.info({ interface: this.#link, routes: known }, 'out of service until the LAN answers');
    }
    await this.#set(initialLanHealth(known), this.#lan === null ? {} : probed);
  }

  async #round(targets: readonly LanTarget[]): Promise<void> {
    void this.#finder.lookUp(targets).catch((error) => void this.#transitions.update(error));
    const round = await Promise.all(targets.map((target) => this.#probe(target)));
    // Meanwhile a pass may have found the network down, or with other routes.
    if (this.#lan === null || this.#health === null) return;
    this.#transitions.update(round.find(({ error }) => error !== null)?.error ?? null);
    const { dead } = this.#health;
    const next = trackLanHealth(this.#health, round, this.#lan.served);
    this.#logChanges(dead, next, round, this.#lan);
    const noted = round.flatMap(({ target, noted }) => (noted === null ? [] : [[target, noted] as const]));
    await this.#set(next, Object.fromEntries(noted));
  }

  async #probe(target: LanTarget): Promise<ProbeOutcome> {
    const address = this.#finder.find(target);
    const outcome = { target: target.name, address: address ?? null, isGood: null, noted: null, error: null };
    if (address === undefined) return outcome;
    const noted = target.address === null ? { address, trouble: null } : null;
    if (address === null) return { ...outcome, noted };
    try {
      return { ...outcome, noted, isGood: await this.#tools.host.probe({ address, port: target.port }, deadline) };
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      return { ...outcome, noted: { address, trouble: error.message }, error };
    }
  }

  #logChanges(before: LanHealth['dead'], { dead }: LanHealth, round: readonly Probe[], { served }: Lan): void {
    const { log } = this.#tools;
    for (const { route } of served.filter((each) => before.includes(each.route) !== dead.includes(each.route))) {
      const behind = round.filter(({ address }) => address !== null && findRouteTo(address, served) === route);
      const facts = { interface: this.#link, route, targets: behind.map(({ target }) => target) };
      if (dead.includes(route)) log.warn(facts, catalogue['lan-silent'].title);
      else log.info(facts, 'the LAN behind a route answers again');
    }
  }

  async #set(health: LanHealth, probed: Notes['probed']): Promise<void> {
    const before = this.#noted;
    this.#health = health;
    this.#noted = { dead: health.dead, probed };
    if (JSON.stringify(before) === JSON.stringify(this.#noted)) return;
    await this.#tools.store.amendNotes(this.#link, this.#noted);
    if (JSON.stringify(before.dead) !== JSON.stringify(health.dead)) this.#trigger();
  }
}

/** Milliseconds. A lookup holds a thread for as long as the resolver takes, so only one runs. */
const lookupDeadline = 10_000;

/** Resolves probe targets apart from the probes, which a resolver in a dead LAN must not delay. */
class ProbeTargetFinder {
  readonly #tools: Pick<Tools, 'host'>;
  readonly #found = new Map<string, Address | null>();
  #isBusy = false;

  constructor(tools: Pick<Tools, 'host'>) {
    this.#tools = tools;
  }

  /** The last address of a target: null if its name has none, undefined before the first lookup. */
  find({ address, host }: LanTarget): Address | null | undefined {
    return address ?? this.#found.get(host);
  }

  /** Resolves the targets' names, one call at a time. A name without an address keeps its last. */
  async lookUp(targets: readonly LanTarget[]): Promise<void> {
    const names = new Set(targets.filter(({ address }) => address === null).map(({ host }) => host));
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (const name of names) {
        const [first] = await this.#tools.host.resolve(name, lookupDeadline);
        this.#found.set(name, first ?? this.#found.get(name) ?? null);
      }
    } finally {
      this.#isBusy = false;
    }
  }
}
