import { CannotWithdraw, type CpnError, expectCpnError, NotJoined, WrongUsage } from '../../core/errors/index.ts';
import { acceptDefaultRoute } from '../../core/health/lan-routes.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import { findUnserved, type Unserved } from '../../core/routing/topology/withdrawal.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Notes } from '../../store/store.ts';
import { accessOf } from '../access.ts';
import { findDiallingDevices } from '../lan/dialling-devices.ts';
import { checkLanRoutes } from '../lan/lan-routes.ts';
import { withdraw, withdrawnBy } from '../lan/withdraw.ts';
import { takeDown } from '../networks/down.ts';
import { readReported } from '../networks/reconcile.ts';
import { evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { isJoined, selectJoined } from '../select.ts';
import type { StateTools, Tools } from '../tools.ts';
import { awaitIdle, describeInflow, isUp } from './await-idle.ts';

export interface DrainReport {
  readonly interface: string;
  /** The routes that are now out of service. */
  readonly withdrawn: readonly Prefix[];
  /** Why routes are still out of service after undoing a drain; empty if none are. */
  readonly reasons: readonly string[];
  /** True if no peer sends through it any more; null if the drain did not wait. */
  readonly idle: boolean | null;
  /** The peers that still send, and how much. */
  readonly traffic: string | null;
  readonly state: 'up' | 'down';
  /** The names of the devices that dial only this host, and use it until it is down. */
  readonly dialling: readonly string[];
  /** The error that prevented the change. */
  readonly failure: CpnError | null;
}

/** What no connector serves once this host is drained. */
export interface LastConnector extends Unserved {
  readonly interface: string;
  readonly network: string;
  readonly dialling: readonly string[];
}

/**
 * Finds the networks in which no other connector takes over from this host. Devices that dial only
 * this host use it while it is out of service, and lose the network with the interface.
 *
 * @param down true if the interface is taken down
 * @throws WrongUsage as {@link drainNetworks} does
 */
export async function findLastConnectors(
  tools: Pick<Tools, 'store' | 'connect' | 'warn'>,
  network: string | undefined,
  down: boolean,
): Promise<LastConnector[]> {
  const { states } = await selectConnectors(tools, network);
  const last: LastConnector[] = [];
  for (const state of states) {
    const { map } = state.membership;
    const self = findOwnPeer(map, state);
    if (self === undefined) continue;
    const unserved = findUnserved(map, self, state.failed);
    const dialling = down ? await findDiallingDevices(tools, state) : [];
    if (unserved.routes.length + unserved.relayed.length + dialling.length === 0) continue;
    last.push({ ...unserved, dialling, interface: state.interface, network: map.name });
  }
  return last;
}

/**
 * Takes connectors out of service: makes the control plane withdraw their routes, waits until the
 * peers send elsewhere, and takes them down if requested. Packets that arrive meanwhile are still
 * forwarded.
 *
 * @param options the seconds to wait for peers that still send, and whether to take the interface
 *   down at the end
 * @throws WrongUsage if there is no connector to drain
 */
export async function drainNetworks(
  tools: Tools,
  network: string | undefined,
  { timeout, down }: { readonly timeout: number; readonly down: boolean },
): Promise<DrainReport[]> {
  const { states, failed } = await selectConnectors(tools, network);
  const reports: DrainReport[] = [...failed];
  const drained: Joined[] = [];
  for (const state of states) {
    const failure = await takeOutOfService(tools, state).catch(expectCpnError);
    if (failure) reports.push(await report(tools, state, { failure }));
    else drained.push({ ...state, drained: true });
  }
  const flows = await Promise.all(drained.map((state) => awaitIdle(tools, state, timeout)));
  for (const [at, state] of drained.entries()) {
    const failure = down ? await takeDown(tools, state.interface).then(() => null, expectCpnError) : null;
    const inflow = flows[at] ?? [];
    const idle = inflow.length === 0;
    const traffic = idle ? null : describeInflow(inflow, state);
    reports.push(await report(tools, state, { withdrawn: withdrawnBy(state), idle, traffic, failure }));
  }
  return reports.toSorted((a, b) => (a.interface < b.interface ? -1 : 1));
}

/**
 * Puts drained connectors back into service, and evaluates the paths to their LANs again: without
 * settling, and a default route is sufficient for a route whose specific path was gone. If the
 * report to the control plane fails, the daemon or `reconcile` repeats it.
 *
 * @throws WrongUsage if there is no connector, or if it is down
 */
export async function undoDrain(tools: Tools, network: string | undefined): Promise<DrainReport[]> {
  const { states, failed } = await selectConnectors(tools, network);
  const down = states.find((state) => !state.enabled);
  if (down)
    throw new WrongUsage(`${down.interface} is down; "cpn up ${down.interface}" brings it up, and back into service`);
  const reports: DrainReport[] = [...failed];
  for (const state of states) {
    // First: otherwise a pass of the daemon in between reports a path that only settles as gone.
    await renewLanRoutes(tools, state);
    await setDrained(tools, state.interface, false);
    const known = await tools.store.readNotes(state.interface);
    const serving = { ...state, drained: false };
    const failure = await withdraw(tools, serving, withdrawnBy(serving, known));
    if (failure === null) await readReported(tools, state.interface);
    const notes = await tools.store.readNotes(state.interface);
    const withdrawn = withdrawnBy(serving, notes);
    const reasons = withdrawn.map((route) => explainWithdrawn(route, notes));
    reports.push(await report(tools, state, { withdrawn, reasons, failure }));
  }
  return reports.toSorted((a, b) => (a.interface < b.interface ? -1 : 1));
}

async function renewLanRoutes(tools: Tools, state: Joined): Promise<void> {
  const { ways: lanRoutes } = await tools.store.readNotes(state.interface);
  if (lanRoutes === null) return;
  await tools.store.amendNotes(state.interface, { ways: acceptDefaultRoute(lanRoutes) });
  // A host that cannot be observed keeps the recorded paths.
  const evaluation = await evaluateNetwork(tools, state).catch(expectCpnError);
  if (!(evaluation instanceof Error)) await checkLanRoutes(tools, evaluation);
}

function explainWithdrawn(route: Prefix, { unloaded, ways: lanRoutes }: Pick<Notes, 'unloaded' | 'ways'>): string {
  if (unloaded !== null) return `${route} (the packet rules do not load)`;
  return `${route} (${lanRoutes?.[route]?.gone ?? 'no host there answers the probes'})`;
}

async function selectConnectors(tools: StateTools, network: string | undefined) {
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
    throw new NotJoined('no network is joined; a connector joins one with "cpn join --type connector"');
  }
  const failed = unreadable.map(({ interface: link, error }): DrainReport => {
    return {
      interface: link,
      withdrawn: [],
      reasons: [],
      idle: null,
      traffic: null,
      state: 'down',
      dialling: [],
      failure: error,
    };
  });
  return { states: connectors, failed };
}

/** Withdraws all its routes. If the control plane refuses that, they stay in service here too. */
async function takeOutOfService(tools: Tools, state: Joined): Promise<CpnError | null> {
  const { interface: link, service } = state;
  if (accessOf(state) === null) throw new CannotWithdraw(service.url, 'it gave this host no token to do it with');
  const drained = { ...state, drained: true };
  const wanted = withdrawnBy(drained);
  if (wanted.length === 0) throw new CannotWithdraw(service.url, 'it no longer lists this host as a connector');
  tools.progress(`taking ${link} out of service`);
  // Saved first: a pass in between must not put it back.
  await setDrained(tools, link, true);
  const failure = await withdraw(tools, drained, wanted);
  if (failure === null) await readReported(tools, link);
  else if (!state.drained) await setDrained(tools, link, false);
  return failure;
}

async function setDrained(tools: Pick<Tools, 'store'>, link: string, drained: boolean): Promise<void> {
  await tools.store.lock(async () => {
    const state = await tools.store.read(link);
    if (state !== null && isJoined(state) && state.drained !== drained) await tools.store.write({ ...state, drained });
  });
}

async function report(
  tools: Pick<Tools, 'host' | 'connect' | 'monotonic'>,
  state: Joined,
  details: Pick<DrainReport, 'failure'> & Partial<DrainReport>,
): Promise<DrainReport> {
  const { interface: link } = state;
  const now = (await isUp(tools, state)) ? 'up' : 'down';
  const dialling = await findDiallingDevices(tools, state);
  return { interface: link, withdrawn: [], reasons: [], idle: null, traffic: null, state: now, dialling, ...details };
}
