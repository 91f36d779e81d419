import type { Prefix } from '../core/cidr.ts';
import { CannotWithdraw, CpnError, NotJoined, WrongUsage } from '../core/errors.ts';
import type { Joined } from '../store/state.ts';
import { accessOf } from './access.ts';
import { awaitQuiet, describeInflow, isUp } from './await-quiet.ts';
import { takeDown } from './leave.ts';
import { reconcileNetworks } from './reconcile.ts';
import { isJoined, selectJoined } from './select.ts';
import type { Tools } from './tools.ts';
import { withdraw, withdrawnBy } from './withdraw.ts';

/** What became of a connector that was to be drained, or put back. */
export interface DrainReport {
  readonly interface: string;
  /** What it has out of service now. */
  readonly withdrawn: readonly Prefix[];
  /** Whether nobody sends through it any more; null where nobody waited for that. */
  readonly idle: boolean | null;
  /** Who still does, and how much. */
  readonly traffic: string | null;
  readonly state: 'up' | 'down';
  /** What kept it as it was. */
  readonly failure: CpnError | null;
}

export interface DrainOptions {
  /** Seconds after which nobody waits any longer for those who still send. */
  readonly timeout: number;
  /** Takes the interface down at the end. */
  readonly down: boolean;
}

/**
 * Takes connectors out of service: has the control plane withdraw what they serve, waits until the peers send elsewhere, and takes
 * them down where that is asked for. What comes in meanwhile is forwarded as ever.
 *
 * @throws WrongUsage when there is no connector to drain
 */
export async function drainNetworks(
  tools: Tools,
  network: string | undefined,
  { timeout, down }: DrainOptions,
): Promise<DrainReport[]> {
  const { states, failed } = await selectConnectors(tools, network);
  const reports: DrainReport[] = [...failed];
  const drained: Joined[] = [];
  for (const state of states) {
    const failure = await takeOut(tools, state).catch(foreseen);
    if (failure) reports.push(await report(tools, state, { failure }));
    else drained.push({ ...state, drained: true });
  }
  const flows = await Promise.all(drained.map((state) => awaitQuiet(tools, state, timeout)));
  for (const [at, state] of drained.entries()) {
    const failure = down ? await takeDown(tools, state.interface).then(() => null, foreseen) : null;
    const inflow = flows[at] ?? [];
    const idle = inflow.length === 0;
    const traffic = idle ? null : describeInflow(inflow, state);
    reports.push(await report(tools, state, { withdrawn: withdrawnBy(state), idle, traffic, failure }));
  }
  return reports.toSorted((a, b) => (a.interface < b.interface ? -1 : 1));
}

/**
 * Puts drained connectors back into service. Where the control plane cannot be told, a pass of the daemon, or `reconcile`, tells it.
 *
 * @throws WrongUsage when there is no connector, or one that is down
 */
export async function undoDrain(tools: Tools, network: string | undefined): Promise<DrainReport[]> {
  const { states, failed } = await selectConnectors(tools, network);
  const down = states.find((state) => !state.enabled);
  if (down)
    throw new WrongUsage(`${down.interface} is down; "cpn up ${down.interface}" brings it up, and back into service`);
  const reports: DrainReport[] = [...failed];
  for (const state of states) {
    await setDrained(tools, state.interface, false);
    const notes = await tools.store.readNotes(state.interface);
    const serving = { ...state, drained: false };
    const withdrawn = withdrawnBy(serving, notes);
    const failure = await withdraw(tools, serving, withdrawn);
    if (failure === null) await readMap(tools, state.interface);
    reports.push(await report(tools, state, { withdrawn, failure }));
  }
  return reports.toSorted((a, b) => (a.interface < b.interface ? -1 : 1));
}

/** The connectors that are meant, and what of it cannot be read. */
async function selectConnectors(tools: Tools, network: string | undefined) {
  const { states, unreadable } = await selectJoined(tools, network);
  const connectors = states.filter((state) => state.enrollment.type === 'connector');
  const [other] = states;
  if (connectors.length === 0 && other) {
    const { interface: link, enrollment } = other;
    const joined = `${link} is joined as ${enrollment.type}`;
    throw new WrongUsage(
      `only a connector serves routes that can be drained, and ${joined}; "cpn down ${link}" takes it down`,
    );
  }
  if (states.length === 0 && unreadable.length === 0) {
    throw new NotJoined('this host has not joined a network; a connector joins with "cpn join --type connector"');
  }
  const failed = unreadable.map(({ interface: link, error }): DrainReport => {
    return { interface: link, withdrawn: [], idle: null, traffic: null, state: 'down', failure: error };
  });
  return { states: connectors, failed };
}

/** Withdraws all that it serves; what cannot be withdrawn at the control plane stays in service here too. */
async function takeOut(tools: Tools, state: Joined): Promise<CpnError | null> {
  const { interface: link, service } = state;
  if (accessOf(state) === null) throw new CannotWithdraw(service.url, 'it gave this host no token to do it with');
  const drained = { ...state, drained: true };
  const wanted = withdrawnBy(drained);
  if (wanted.length === 0) throw new CannotWithdraw(service.url, 'it no longer lists this host as a connector');
  tools.progress(`taking ${link} out of service`);
  // Saved first: a pass that comes in between must not put it back.
  await setDrained(tools, link, true);
  const failure = await withdraw(tools, drained, wanted);
  if (failure === null) await readMap(tools, link);
  else if (!state.drained) await setDrained(tools, link, false);
  return failure;
}

async function setDrained(tools: Tools, link: string, drained: boolean): Promise<void> {
  await tools.store.lock(async () => {
    const state = await tools.store.read(link);
    if (state !== null && isJoined(state) && state.drained !== drained) await tools.store.write({ ...state, drained });
  });
}

/** Lets this host know of itself what the others know; where no daemon does it, nobody else would. */
async function readMap(tools: Tools, link: string): Promise<void> {
  for (const { failure, unsynced } of await reconcileNetworks(tools, link)) {
    const error = failure ?? unsynced;
    if (error) tools.warn(error.message);
  }
}

async function report(
  tools: Tools,
  state: Joined,
  told: Pick<DrainReport, 'failure'> & Partial<DrainReport>,
): Promise<DrainReport> {
  const { interface: link } = state;
  const now = (await isUp(tools, state)) ? 'up' : 'down';
  return { interface: link, withdrawn: [], idle: null, traffic: null, state: now, ...told };
}

function foreseen(error: unknown): CpnError {
  if (!(error instanceof CpnError)) throw error;
  return error;
}
