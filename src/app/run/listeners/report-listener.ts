import type { ProbeResult } from '../../../contract/health.ts';
import type { PublicKey } from '../../../core/crypto/keys.ts';
import { CpnError, Refused, Unreachable } from '../../../core/errors/index.ts';
import {
  composeReport,
  emptyReport,
  formatReport,
  type HostReport,
  type Reachability,
  type ReportPart,
  withProblem,
} from '../../../core/health/report/compose-report.ts';
import { type PeerActivity, trackActivity } from '../../../core/health/report/peer-activity.ts';
import { findWaiting, ownKeys } from '../../../core/map/own-peer.ts';
import { identifyRefused, type RefusedConnection } from '../../../core/rules/refused.ts';
import type { Joined } from '../../../store/state/state.ts';
import { accessOf, identifyMembership } from '../../access.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { isJoined } from '../../select.ts';
import { withExtensions } from '../../service-features.ts';
import { secondsNow, type Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import { TransitionLogger } from '../transition-logger.ts';
import { onKept, onNew, type Pauses, ReportSchedule } from './report-schedule.ts';

/** The contract's limit. */
const mostRefused = 16;

/** For one report. A later pass sends the next one. */
const patience = { deadlineMs: 10_000, attempts: 3, connection: 'keep' } as const;

/**
 * Reports to the control plane what this host observes: what changed its state after the pass that
 * found it, figures once a minute at most, and all of it at the start and after a failure. It sends
 * nothing to a service that does not describe the operation.
 */
export class ReportListener implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #findRtts: () => ReadonlyMap<PublicKey, number>;
  readonly #transitions: TransitionLogger;
  readonly #schedule = new ReportSchedule();
  readonly #ending = new AbortController();
  #activity: ReadonlyMap<PublicKey, PeerActivity> = new Map();
  #state: Joined | null = null;
  #identity: string | null = null;
  /** Null before the first pass. */
  #observed: HostReport | null = null;
  #problem: string | null = null;
  /** Consecutive. */
  #failedPasses = 0;
  /** Refused connections that the service does not have, the latest first. */
  #refused: readonly RefusedConnection[] = [];
  #sending: Promise<void> | null = null;
  /** True if the newest map cannot be read: the control plane is overloaded, or down. */
  #isAway = false;
  /** The value in the notes; undefined before the first write. */
  #noted: string | undefined;

  /** @param findRtts the milliseconds that the daemon's own probes of peers took */
  constructor(tools: Tools, link: string, findRtts: () => ReadonlyMap<PublicKey, number>) {
    this.#tools = tools;
    this.#link = link;
    this.#findRtts = findRtts;
    const messages = {
      begins: 'what this host observes could not be reported',
      ends: 'observations are reported again',
    };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  async run(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve());
      if (signal.aborted) resolve();
    });
    this.#ending.abort();
    await this.#sending;
  }

  /** Sends without delaying the pass, one report at a time and the newest last. */
  async onPass({ evaluation, changes }: Pass): Promise<void> {
    if (evaluation === null) {
      if (this.#observed !== null) this.#observed = emptyReport;
    } else {
      const { state } = evaluation;
      this.#state = state;
      const identity = identifyMembership(state);
      if (identity !== this.#identity) {
        this.#schedule.reset();
        this.#schedule.forget();
        if (this.#identity !== null) this.#refused = [];
      }
      this.#identity = identity;
      if (!mayReport(state)) {
        this.#observed = null;
        this.#schedule.forget();
        return this.#note(null);
      }
      this.#observed = await this.#compose(evaluation, evaluation.changes.length - changes.length);
    }
    this.#start();
  }

  /** Ignores a single failure: the retry follows within seconds. */
  onResult(error: unknown): void {
    this.#failedPasses = error === null ? 0 : this.#failedPasses + 1;
    if (this.#failedPasses === 1 && !(error instanceof CpnError && !error.isRetryable)) return;
    const problem = error === null ? null : error instanceof Error ? error.message : String(error);
    if (problem === this.#problem) return;
    this.#problem = problem;
    // Before the first successful pass, only the problem can be reported.
    const observed = this.#state === null ? (this.#observed ?? emptyReport) : this.#observed;
    if (observed === null) return;
    this.#observed = withProblem(observed, problem);
    this.#start();
  }

  /** Records probe results that the control plane received and uses as paths. */
  noteProbed(probes: readonly ProbeResult[]): void {
    this.#schedule.noteProbed(probes);
  }

  /** Adds connections that rules refused to the next report, which is due then. */
  noteRefused(refused: readonly RefusedConnection[]): void {
    const added = new Set(refused.map(identifyRefused));
    const others = this.#refused.filter((each) => !added.has(identifyRefused(each)));
    this.#refused = [...refused, ...others].slice(0, mostRefused);
  }

  /** Ends the pause after a failure: the control plane may be reachable again. */
  reset(): void {
    this.#schedule.reset();
  }

  /** Sends what is due while no long poll uses the connection. */
  async reportIdle(): Promise<void> {
    if (this.#sending !== null) return;
    this.#start(onKept);
    await this.#sending;
  }

  async #compose(evaluation: Evaluation, drift: number): Promise<HostReport> {
    const { state, desired, actual } = evaluation;
    const { membership, failed, pins, options } = state;
    const peers = actual.device?.peers ?? [];
    const at = this.#tools.monotonic();
    this.#activity = trackActivity(this.#activity, peers, at);
    const { dead, ways: lanRoutes, sync } = await this.#tools.store.readNotes(this.#link);
    this.#isAway = sync.error !== null;
    const unserved = Object.entries(lanRoutes ?? {}).filter(([, { gone }]) => gone !== null);
    return composeReport({
      ...{ map: membership.map, self: { id: membership.peer.id, keys: ownKeys(state) } },
      ...{ reached: desired.config.peers, routes: desired.report },
      ...{ mismatches: pins.flatMap(({ claimed }) => claimed?.peer ?? []) },
      ...{ peers, activity: this.#activity, rtts: this.#findRtts(), failed, drift, at },
      dead: new Set<string>([...dead, ...unserved.map(([route]) => route)]),
      areLansProbed: options.probes.length > 0,
      problem: this.#problem,
      now: secondsNow(this.#tools),
    });
  }

  #start(pauses = onNew): void {
    this.#sending ??= this.#send(pauses).finally(() => {
      this.#sending = null;
    });
  }

  async #send(pauses: Pauses): Promise<void> {
    if (this.#state === null) await this.#readState();
    for (let part = this.#findDue(pauses); part !== null; part = this.#findDue(pauses)) await this.#report(part);
  }

  async #readState(): Promise<void> {
    const state = await this.#tools.store.read(this.#link).catch(() => null);
    if (this.#state !== null || state === null || !isJoined(state) || !mayReport(state)) return;
    this.#state = state;
    this.#identity = identifyMembership(state);
  }

  #findDue(pauses: Pauses): ReportPart | null {
    if (this.#observed === null || this.#state === null || this.#ending.signal.aborted) return null;
    const isListed = (name: number | string) => this.#isListed(name);
    const now = this.#tools.monotonic();
    const context = { now, pauses, isAway: this.#isAway, hasRefused: this.#listRefused().length > 0, isListed };
    return this.#schedule.findDue(this.#observed, context);
  }

  /** Empty if the service does not describe the field. */
  #listRefused(): readonly RefusedConnection[] {
    return this.#state?.features?.includes('peer-refused') ? this.#refused : [];
  }

  #isListed(name: number | string): boolean {
    const map = this.#state?.membership.map;
    return map !== undefined && (map.peers.some(({ id }) => id === name) || map.routes.some((route) => route === name));
  }

  async #report(part: ReportPart): Promise<void> {
    const tools = this.#tools;
    const now = tools.monotonic();
    const next = this.#observed;
    const state = this.#state;
    const access = state && accessOf(state);
    if (next === null || state === null || access === null) return this.#schedule.restAfterRefusal(now);
    this.#schedule.noteSent(now);
    try {
      const { id } = state.membership.peer;
      const refused = this.#listRefused();
      const report = formatReport({ ...part, refused }, secondsNow(tools));
      const reply = await withExtensions(tools, state, patience, (service) =>
        service.report(access.network, id, access.token, report, this.#ending.signal),
      );
      if (this.#identity !== identifyMembership(state)) return;
      this.#schedule.noteTaken(part, next, reply, now);
      this.#refused = this.#refused.filter((each) => !refused.includes(each));
      this.#transitions.update(null);
      await this.#note(reply);
    } catch (error) {
      if (this.#ending.signal.aborted) return;
      await this.#fail(error);
    }
  }

  async #fail(error: unknown): Promise<void> {
    const failures = this.#schedule.noteFailure(error, this.#tools.monotonic());
    const { sync } = await this.#tools.store.readNotes(this.#link);
    // If the map request fails too, the log has a message; after a first failure, that is unknown.
    if (failures > 1 && sync.error === null && !isOfEachRequest(error)) this.#transitions.update(error);
    await this.#note(null);
  }

  async #note(reachability: Reachability | null): Promise<void> {
    const noted = JSON.stringify(reachability);
    if (noted === this.#noted) return;
    this.#noted = noted;
    await this.#tools.store.amendNotes(this.#link, { reachability });
  }
}

/** True for errors that the map request has too, which the log already reports. */
function isOfEachRequest(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof Refused && [401, 403, 404].includes(error.status));
}

/** Needs the host's own token: a personal token belongs to a user. A waiting host is refused. */
function mayReport(state: Joined): boolean {
  const { features, membership } = state;
  const hasAccess = membership.accessToken !== null && membership.map.id !== null;
  return (features?.includes('peer-report') ?? false) && hasAccess && findWaiting(state) === null;
}
