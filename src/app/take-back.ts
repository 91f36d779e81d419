import { aliasOf } from '../core/desired.ts';
import { CpnError, NotOurs } from '../core/errors.ts';
import { isForwardingKey } from '../core/link-sysctl.ts';
import { explainHosts } from '../core/plan-hosts.ts';
import { holdsTunnel } from '../core/plan-rules.ts';
import { type Made, planTakeBack } from '../core/receipt.ts';
import type { Joined, State } from '../store/state.ts';
import { apply, applyStep, save } from './apply.ts';
import { isJoined } from './select.ts';
import { isForwarder, isOwnLink, questionOf, survey } from './survey.ts';
import type { Tools } from './tools.ts';

/**
 * Takes back from the host what was made on it for one network, and returns the state without it; what another network
 * still needs is handed over to that one. Folders stay: they are taken back at the end, by whoever removes the state.
 */
export async function takeBack(tools: Tools, state: State): Promise<State> {
  const actual = await tools.host.observe(questionOf(state));
  const alias = isJoined(state) ? aliasOf(state.membership.map) : '';
  const foreign = actual.link !== null && !isOwnLink(state, alias, actual);
  if (foreign && state.receipt.some((entry) => entry.made === 'interface')) {
    tools.warn(new NotOurs('the interface', state.interface, 'it is left as it is').message);
  }
  const shared = state.receipt.filter((entry) => entry.made === 'sysctl' && isForwardingKey(entry.key));
  const successor = await findSuccessor(tools, state);
  if (successor && shared.length > 0) await handOver(tools, successor, shared);
  const own = state.receipt.filter(
    (entry) =>
      entry.made === 'firewall' ||
      entry.made === 'hosts' ||
      (entry.made === 'sysctl' && (successor === null || !shared.includes(entry))),
  );
  // wg-quick makes our interface and its rules too, and writes no receipt for them.
  const link: Made[] = foreign ? [] : [{ made: 'interface', link: state.interface }];
  const hasRules = state.receipt.some((entry) => entry.made === 'rules') || (!foreign && holdsTunnel(actual));
  const rules: Made[] = hasRules ? [{ made: 'rules', link: state.interface }] : [];
  const stuck = explainHosts({ hosts: null }, actual);
  if (stuck !== null) tools.warn(`the names of the peers of ${state.interface} stay in the hosts file: ${stuck}`);
  let namesStay = stuck !== null;
  for (const step of planTakeBack([...link, ...rules, ...own], actual)) {
    if (!(await applyStep(tools, step))) namesStay = true;
  }
  const stays = (entry: Made) => entry.made === 'folder' || (namesStay && entry.made === 'hosts');
  const left: State = { ...state, receipt: state.receipt.filter(stays) };
  await tools.store.write(left);
  await tools.store.amendNotes(state.interface, { unloaded: null });
  return left;
}

/** Adds entries to the receipt of another network, which takes them back in its turn. */
export async function transferOwnership(tools: Tools, successor: State, entries: readonly Made[]): Promise<void> {
  const known = new Set(successor.receipt.map((entry) => JSON.stringify(entry)));
  const added = entries.filter((entry) => !known.has(JSON.stringify(entry)));
  if (added.length > 0) await tools.store.write({ ...successor, receipt: [...added, ...successor.receipt] });
}

/**
 * Hands the forwarding of interfaces over to another network, whose packet rules keep it in bounds before those of the first one go.
 * That this fails keeps nothing from being taken back: the next pass of that network tries again.
 */
async function handOver(tools: Tools, successor: Joined, entries: readonly Made[]): Promise<void> {
  await transferOwnership(tools, successor, entries);
  try {
    const known = (await tools.store.read(successor.interface)) as Joined;
    const planned = await survey(tools, known);
    await save(tools, await apply(tools, planned, known), known, planned);
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    tools.warn(error.message);
  }
}

/** Another network of this host that is up and forwards packets. */
async function findSuccessor(tools: Tools, state: State): Promise<Joined | null> {
  const { states: others } = await tools.store.list();
  return others.filter(isForwarder).find((other) => other.interface !== state.interface) ?? null;
}
