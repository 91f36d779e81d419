import { CpnError } from '../../core/errors.ts';
import { beginHealth, findRouteTo, followLan, type LanHealth, type Probe } from '../../core/lan-health.ts';
import type { Joined } from '../../store/state.ts';
import type { Notes } from '../../store/store.ts';
import { findLan, type Lan, type Target } from '../lan.ts';
import type { Tools } from '../tools.ts';
import { Bell } from './bell.ts';
import { TargetFinder } from './find-targets.ts';
import { Once } from './once.ts';

/** Milliseconds from the beginning of a round to the next, from its end at the least, and for each probe in it. */
const every = 2_000;
const rest = 500;
const deadline = 1_500;

/** What a probe showed, or why it could not be made. */
interface Outcome extends Probe {
  readonly noted: Notes['probed'][string] | null;
  readonly error: CpnError | null;
}

/** Probes the LANs behind a connector, and notes behind which routes nobody answers. */
export class LanWatch {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #onChange: () => void;
  readonly #once: Once;
  readonly #finder: TargetFinder;
  readonly #bell = new Bell();
  #lan: Lan | null = null;
  /** Null until the first look. */
  #health: LanHealth | null = null;
  #noted: Pick<Notes, 'dead' | 'probed'> = { dead: [], probed: {} };

  /** @param onChange called when the notes say of other routes than before that they are dead */
  constructor(tools: Tools, link: string, onChange: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#onChange = onChange;
    this.#finder = new TargetFinder(tools);
    const trouble = { begins: 'a probe target cannot be asked', ends: 'every probe target can be asked again' };
    this.#once = new Once(tools.log, { interface: link }, trouble);
  }

  /**
   * Takes over what the network is now; null while it is taken down, when nothing is probed. The first time it counts as dead
   * what is out of service already, which stays so until it was seen well.
   */
  async note(state: Joined | null): Promise<void> {
    this.#lan = state && findLan(state);
    if (state === null) return;
    if (this.#health === null) await this.#begin(state);
    else if (this.#lan === null) await this.#take(beginHealth(), {});
    if (this.#lan !== null) this.#bell.ring();
  }

  /** Probes until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    const { sleep, monotonic } = this.#tools;
    signal.addEventListener('abort', () => this.#bell.ring());
    while (!signal.aborted) {
      await this.#bell.rung();
      while (this.#lan !== null && !signal.aborted) {
        const began = monotonic();
        await this.#round(this.#lan.targets).catch((error) => void this.#once.notice(error));
        await sleep(Math.max(rest, every - 1000 * (monotonic() - began)), signal);
      }
    }
    this.#bell.silence();
  }

  /** What was taken out of service before this process began is on the map; what nobody could be told, in the notes. */
  async #begin(state: Joined): Promise<void> {
    const { dead, probed } = await this.#tools.store.readNotes(this.#link);
    this.#noted = { dead, probed };
    const { routes, self } = this.#lan ?? { routes: [], self: null };
    // That every route of a drained connector is out of service tells nothing of its LANs.
    const withdrawn = state.drained ? [] : (self?.withdrawn ?? []);
    const known = routes.filter((route) => dead.includes(route) || withdrawn.includes(route));
    if (known.length > 0) {
      this.#tools.log.info({ interface: this.#link, routes: known }, 'out of service until the LAN was seen well');
    }
    await this.#take(beginHealth(known), this.#lan === null ? {} : probed);
  }

  async #round(targets: readonly Target[]): Promise<void> {
    void this.#finder.lookUp(targets).catch((error) => void this.#once.notice(error));
    const round = await Promise.all(targets.map((target) => this.#probe(target)));
    // The network may have been taken down, or have other routes, meanwhile.
    if (this.#lan === null || this.#health === null) return;
    this.#once.notice(round.find(({ error }) => error !== null)?.error ?? null);
    const { dead } = this.#health;
    const next = followLan(this.#health, round, this.#lan.routes);
    this.#tell(dead, next, round, this.#lan);
    const noted = round.flatMap(({ target, noted }) => (noted === null ? [] : [[target, noted] as const]));
    await this.#take(next, Object.fromEntries(noted));
  }

  async #probe(target: Target): Promise<Outcome> {
    const address = this.#finder.find(target);
    const outcome = { target: target.name, address: address ?? null, isGood: null, noted: null, error: null };
    if (address === undefined) return outcome;
    const noted = target.address === null ? { address, trouble: null } : null;
    if (address === null) return { ...outcome, noted };
    try {
      return { ...outcome, noted, isGood: await this.#tools.host.reaches({ address, port: target.port }, deadline) };
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      return { ...outcome, noted: { address, trouble: error.message }, error };
    }
  }

  #tell(before: LanHealth['dead'], { dead }: LanHealth, round: readonly Probe[], { routes }: Lan): void {
    const { log } = this.#tools;
    for (const route of routes.filter((each) => before.includes(each) !== dead.includes(each))) {
      const behind = round.filter(({ address }) => address !== null && findRouteTo(address, routes) === route);
      const facts = { interface: this.#link, route, targets: behind.map(({ target }) => target) };
      if (dead.includes(route)) log.warn(facts, 'the LAN behind a route does not answer');
      else log.info(facts, 'the LAN behind a route is well again');
    }
  }

  /** Goes by this health from now on, and sees that the notes tell it. */
  async #take(health: LanHealth, probed: Notes['probed']): Promise<void> {
    const before = this.#noted;
    this.#health = health;
    this.#noted = { dead: health.dead, probed };
    if (JSON.stringify(before) === JSON.stringify(this.#noted)) return;
    await this.#tools.store.amendNotes(this.#link, this.#noted);
    if (JSON.stringify(before.dead) !== JSON.stringify(health.dead)) this.#onChange();
  }
}
