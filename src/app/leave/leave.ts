import { FileNotTakenBack, NotConverged, NotJoined } from '../../core/errors/index.ts';
import { tableOf } from '../../core/forward/own-table.ts';
import { formatRule } from '../../core/host-state/policy-rule.ts';
import { planDnsRemoval } from '../../core/reconcile/plan-dns.ts';
import { findOurRules } from '../../core/routing/tunnel-rules.ts';
import type { State } from '../../store/state/state.ts';
import { forEachState } from '../networks/down.ts';
import { describeFormer, listFormer, recordFormer, selectFormer } from '../networks/former-networks.ts';
import { describeStaying, tryRemoval } from '../networks/remove-peer.ts';
import { cleanUp, deleteState } from '../reconcile/cleanup.ts';
import { observeOptionsFor } from '../reconcile/observe-options.ts';
import { isJoined, type SelectedNetworks, selectMeant } from '../select.ts';
import type { HostTools, StateTools, Tools } from '../tools.ts';

export interface LeaveReport {
  readonly interface: string;
  /** True if the control plane removed this peer; false if it was unreachable. */
  readonly removed: boolean;
  /** True if identity and token are kept to remove or replace the peer later. */
  readonly former: boolean;
}

/**
 * Returns the networks to leave: the named one; without a name the only one, or with `all` each.
 * Empty if `network` names one that was left already.
 *
 * @throws WrongUsage as {@link selectMeant} does
 * @throws NotJoined if it names neither
 */
export async function selectLeaving(
  tools: StateTools,
  network: string | undefined,
  all: boolean,
): Promise<SelectedNetworks> {
  try {
    return await selectMeant(tools.store, network, all);
  } catch (error) {
    if (!(error instanceof NotJoined) || selectFormer(await listFormer(tools), network).length === 0) throw error;
    return { states: [], unreadable: [] };
  }
}

/**
 * Leaves networks: removes the peer from the network if the service can, reverts all changes on the
 * host, and removes file and state. Also removes the remains of an incomplete join.
 *
 * @param links the interfaces; all by default. Names are not accepted: their owner may have changed
 *   them since the user confirmed.
 * @param keepsPeer leaves the peer in its network, for another host that also has its identity, and
 *   keeps nothing of it here
 */
export async function leaveNetworks(
  tools: Tools,
  links?: readonly string[],
  keepsPeer = false,
): Promise<LeaveReport[]> {
  return tools.store.lock(async () => {
    const { states, unreadable } = await tools.store.list();
    const isLeaving = ({ interface: link }: { readonly interface: string }) => links?.includes(link) ?? true;
    const leaving = { states: states.filter(isLeaving), unreadable: unreadable.filter(isLeaving) };
    return forEachState(tools, leaving, async (state) => {
      const { removed, former } = keepsPeer ? stays : await leaveService(tools, state);
      const left = await cleanUp(tools, { ...state, enabled: false });
      await refuseOwedFiles(tools, left);
      await deleteState(tools, left);
      return { interface: state.interface, removed, former };
    });
  });
}

/** @throws FileNotTakenBack if a resolver still has a file of ours: only the state leads to it */
async function refuseOwedFiles(tools: Tools, left: State): Promise<void> {
  if (!left.ownsDns) return;
  const actual = await tools.host.observe(observeOptionsFor(left));
  for (const step of planDnsRemoval(left.interface, actual, 'taken back')) {
    if (step.do !== 'revert-dns' || step.files === undefined) continue;
    const paths = Object.keys(step.files.texts);
    const isThere = paths.some((path) => path in (actual.dnsFiles ?? {}));
    throw new FileNotTakenBack(left.interface, paths.join(', '), step.files.program, isThere);
  }
}

const stays = { removed: false, former: false } as const;

/** Removes the peer from its network, or keeps what is needed to do it later, with a warning. */
async function leaveService(tools: Tools, state: State): Promise<Omit<LeaveReport, 'interface'>> {
  const problem = await tryRemoval(tools, state);
  if (problem === null) return { removed: true, former: false };
  const kept = isJoined(state) ? await recordFormer(tools, state) : null;
  tools.warn(kept === null ? describeStaying(state, problem) : `${problem}; ${describeFormer(kept)}`);
  return { removed: false, former: kept !== null };
}

/**
 * Verifies that nothing of a left network remains here, except what {@link recordFormer} kept.
 *
 * @returns the resources that were checked, and are absent
 * @throws NotConverged with the resources that remain
 */
export async function verifyLeft(tools: HostTools, link: string): Promise<readonly string[]> {
  const actual = await tools.host.observe({ link, firewall: true, sysctls: [], hosts: true, dns: true });
  const files = Object.keys(actual.dnsFiles ?? {});
  // The rules of a full tunnel belong to one network, which may be another one.
  const others = (await tools.store.list()).states.filter((state) => state.interface !== link);
  const rules = others.length > 0 ? [] : findOurRules(actual.rules).map((rule) => `rule ${formatRule(rule)}`);
  const searched: readonly (readonly [what: string, isThere: boolean])[] = [
    [`interface ${link}`, actual.link !== null],
    [`nft table ${tableOf(link)}`, actual.firewall !== null],
    [`block of ${link} in the hosts file`, actual.hosts?.block != null],
    [files.join(', ') || `file of ${link} for a resolver`, files.length > 0],
    [tools.store.configPath(link), (await tools.store.readConfig(link)) !== null],
    [`state of ${link}`, (await tools.store.read(link)) !== null],
  ];
  const left = [...searched.flatMap(([what, isThere]) => (isThere ? what : [])), ...rules];
  if (left.length > 0) throw new NotConverged(link, left);
  return [...searched.map(([what]) => what), ...(others.length > 0 ? [] : ['policy rule of cpn'])];
}
