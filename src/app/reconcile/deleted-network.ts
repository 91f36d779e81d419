import { expectCpnError } from '../../core/errors/index.ts';
import { type Problem, problem } from '../../core/problems/problem.ts';
import type { Joined, State } from '../../store/state/state.ts';
import type { Tools } from '../tools.ts';
import { cleanUp } from './cleanup.ts';

/** Returns the state after the second statement of the deletion: down until the network is back. */
export function withDeletion(state: Joined, at: string): Joined {
  if (state.deletion !== undefined) return state;
  return { ...state, enabled: false, deletion: { at, resumes: state.enabled } };
}

/** Returns the state as before the deletion, or down if the network was taken down since. */
export function withoutDeletion<Kind extends State>(state: Kind): Kind {
  const { deletion, ...others } = state;
  return deletion === undefined ? state : ({ ...others, enabled: deletion.resumes } as Kind);
}

/** True if parts of a deleted network are still on the host, as after a crash. */
export async function isOnHost(
  { store }: Pick<Tools, 'store'>,
  { interface: link, receipt, openPorts }: Joined,
): Promise<boolean> {
  const isMade = receipt.some(({ made }) => made === 'interface' || made === 'firewall' || made === 'rules');
  return isMade || openPorts.length > 0 || (await store.readConfig(link)) !== null;
}

/**
 * Removes a deleted network's tunnel, under the lock. State, keys and token stay, in case it
 * returns. The wg-quick file is renamed: neither a boot nor `wg-quick@` brings the tunnel up.
 *
 * @throws DiskFailed if the file cannot be renamed; the tunnel is removed even then
 */
export async function removeTunnel(tools: Tools, state: Joined): Promise<void> {
  // Saved first: after a crash in between, a pass removes the rest.
  await tools.store.write(state);
  const failure = await tools.store.setConfigAside(state.interface).then(() => null, expectCpnError);
  await cleanUp(tools, state);
  // The next pass tries again.
  if (failure !== null) throw failure;
}

export function findDeletion({ interface: link, deletion, membership, service }: Joined): Problem | null {
  if (deletion === undefined) return null;
  const { at: received_at, resumes } = deletion;
  const facts = { interface: link, network: membership.map.name, service: service.url, received_at, resumes };
  return problem('network-deleted', facts);
}

/** The problem of a network that was deleted or taken down; null if it is in use. */
export function findDown(state: Joined): Problem | null {
  return findDeletion(state) ?? (state.enabled ? null : problem('taken-down', { interface: state.interface }));
}
