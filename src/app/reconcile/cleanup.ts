import { expectCpnError, NotOurs } from '../../core/errors/index.ts';
import type { OwnedResource } from '../../core/host-state/receipt.ts';
import { isForwardingKey } from '../../core/host-state/sysctl-keys.ts';
import { aliasOf } from '../../core/reconcile/desired.ts';
import { planCleanup } from '../../core/reconcile/plan-cleanup.ts';
import { planDnsRemoval } from '../../core/reconcile/plan-dns.ts';
import { explainHosts } from '../../core/reconcile/plan-hosts.ts';
import { holdsTunnel } from '../../core/reconcile/plan-rules.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import { applyEvaluation, applyStep, save } from './apply.ts';
import { findRouteTable, isForwarder } from './desire-network.ts';
import { evaluateNetwork, isOwnLink } from './evaluate-network.ts';
import { observeOptionsFor } from './observe-options.ts';
import { closePorts } from './open-ports.ts';

/**
 * Removes what was created on the host for a network; returns the state without it. Resources that
 * another network needs are transferred. The caller that deletes the state removes the folders.
 */
export async function cleanUp(tools: Tools, state: State): Promise<State> {
  tools.evaluations.forget(state.interface);
  await tools.store.clearServing(state.interface).catch((error) => tools.warn(expectCpnError(error).message));
  const actual = await tools.host.observe(observeOptionsFor(state));
  const alias = isJoined(state) ? aliasOf(state.membership.map) : '';
  const foreign = actual.link !== null && !isOwnLink(state, alias, actual);
  if (foreign && state.receipt.some((entry) => entry.made === 'interface')) {
    tools.warn(new NotOurs('the interface', state.interface, 'it is left as it is').message);
  }
  const shared = state.receipt.filter((entry) => entry.made === 'sysctl' && isForwardingKey(entry.key));
  const others = (await tools.store.list()).states.filter((other) => other.interface !== state.interface);
  const successor = others.find(isForwarder) ?? null;
  if (successor && shared.length > 0) await transferSysctls(tools, successor, shared);
  const own = state.receipt.filter(
    (entry) =>
      entry.made === 'firewall' ||
      entry.made === 'hosts' ||
      (entry.made === 'sysctl' && (successor === null || !shared.includes(entry))),
  );
  // wg-quick creates our interface and its rules too, without a receipt.
  const link: OwnedResource[] = foreign ? [] : [{ made: 'interface', link: state.interface }];
  const written = state.receipt.filter((entry) => entry.made === 'rules');
  const isTunnel = written.some(({ table }) => table === undefined) || (!foreign && holdsTunnel(actual));
  const table = findRouteTable(state, (await tools.store.list()).states, actual);
  const rules: OwnedResource[] = [
    ...(isTunnel ? [{ made: 'rules', link: state.interface } as const] : []),
    ...(table === null ? [] : [{ made: 'rules', link: state.interface, table } as const]),
  ];
  const stuck = explainHosts({ hosts: null }, actual);
  if (stuck !== null) tools.warn(`the names of the peers of ${state.interface} stay in the hosts file: ${stuck}`);
  let [namesStay, dnsStays] = [stuck !== null, false];
  const names = state.ownsDns ? planDnsRemoval(state.interface, actual, 'taken back') : [];
  // A file is ours even if the interface belongs to another program.
  const ownNames = names.filter((step) => !foreign || (step.do === 'revert-dns' && step.files !== undefined));
  for (const step of [...ownNames, ...planCleanup([...link, ...rules, ...own], actual)]) {
    if (await applyStep(tools, step)) continue;
    if (step.do === 'remove-hosts') namesStay = true;
    if (step.do === 'revert-dns') dnsStays = true;
  }
  const stays = (entry: OwnedResource) => entry.made === 'folder' || (namesStay && entry.made === 'hosts');
  const openPorts = await closePorts(tools, state);
  const { ownsDns: _, refusedDns: __, ...known } = state;
  const left: State = { ...known, ...(dnsStays && { ownsDns: true }), receipt: state.receipt.filter(stays), openPorts };
  await tools.store.write(left);
  await tools.store.amendNotes(state.interface, { unloaded: null });
  return left;
}

/** Deletes file and state. The folders that we created are removed with the last network. */
export async function deleteState(tools: Pick<Tools, 'store'>, state: State): Promise<void> {
  const folders = state.receipt.filter((entry) => entry.made === 'folder');
  const successor = (await tools.store.list()).states.find((other) => other.interface !== state.interface);
  if (successor) await transferOwnership(tools, successor, folders);
  await tools.store.forget(
    state.interface,
    folders.map((folder) => folder.path),
  );
}

/** Adds entries to the receipt of another network, which removes them later. */
export async function transferOwnership(
  tools: Pick<Tools, 'store'>,
  successor: State,
  entries: readonly OwnedResource[],
): Promise<void> {
  const known = new Set(successor.receipt.map((entry) => JSON.stringify(entry)));
  const added = entries.filter((entry) => !known.has(JSON.stringify(entry)));
  if (added.length > 0) await tools.store.write({ ...successor, receipt: [...added, ...successor.receipt] });
}

/**
 * Transfers the forwarding of interfaces to another network, whose packet rules must limit it
 * first. A failure does not stop the cleanup: the next pass of that network tries again.
 */
async function transferSysctls(tools: Tools, successor: Joined, entries: readonly OwnedResource[]): Promise<void> {
  await transferOwnership(tools, successor, entries);
  try {
    const known = (await tools.store.read(successor.interface)) as Joined;
    const planned = await evaluateNetwork(tools, known);
    await save(tools, await applyEvaluation(tools, planned, known), known, planned);
  } catch (error) {
    tools.warn(expectCpnError(error).message);
  }
}
