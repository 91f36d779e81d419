import { type PortHolder, PortTaken } from '../../core/errors/index.ts';
import type { Joined } from '../../store/state/state.ts';
import { isJoined } from '../select.ts';
import type { HostTools, Tools } from '../tools.ts';
import type { Evaluation } from './evaluate-network.ts';

/** The UDP port that prevents an interface from coming up. */
export interface PortConflict {
  readonly port: number;
  /** Null if no network of this host has it. */
  readonly holder: PortHolder | null;
}

type ConflictInputs = Pick<Evaluation, 'state' | 'desired' | 'actual'>;

/** Finds what uses the listen port of an interface that is missing or down; null if it is free. */
export async function findPortConflict(
  tools: HostTools,
  { state, desired, actual }: ConflictInputs,
): Promise<PortConflict | null> {
  const port = desired.config.listenPort;
  // Without separate routes, a tunnel that lost its address counts as down but has its port.
  const isUp = actual.link?.up || (actual.isPlain === true && actual.device !== null);
  if (!state.enabled || actual.unread !== undefined || isUp || port === null) return null;
  if (await tools.host.isPortFree(port)) return null;
  const holder = await findPortHolder(tools, state, port);
  // wireguard-go keeps its port while its interface is down.
  return actual.link !== null && holder === null ? null : { port, holder };
}

/** Returns the other network of this host whose interface has a UDP port. */
export async function findPortHolder(
  tools: HostTools,
  { interface: link }: Pick<Joined, 'interface'>,
  port: number,
): Promise<PortHolder | null> {
  const { states } = await tools.store.list();
  for (const { interface: other, membership } of states.filter(isJoined)) {
    if (other === link || (await tools.host.device(other))?.listenPort !== port) continue;
    return { link: other, network: membership.map.name };
  }
  return null;
}

/** Milliseconds: a userspace tunnel releases its port shortly after its removal. */
const retryPauseMs = 200;
const attempts = 5;

/** True as soon as a UDP port is free; false if it is still in use after a second. */
export async function awaitFreePort({ host, sleep }: Pick<Tools, 'host' | 'sleep'>, port: number): Promise<boolean> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    if (await host.isPortFree(port)) return true;
    await sleep(retryPauseMs);
  }
  return host.isPortFree(port);
}

/**
 * Refuses to bring up an interface whose listen port is in use, before anything is created. Removes
 * an interface of ours that is down, as earlier versions left it.
 *
 * @throws PortTaken
 */
export async function refuseTakenPort(
  tools: Pick<Tools, 'host' | 'store' | 'sleep'>,
  planned: ConflictInputs,
): Promise<void> {
  const conflict = await findPortConflict(tools, planned);
  if (conflict === null || (await awaitFreePort(tools, conflict.port))) return;
  const { link } = planned.desired;
  if (planned.actual.link !== null) await tools.host.apply({ do: 'delete-link', link, changes: [] });
  throw new PortTaken(link, conflict.port, { holder: conflict.holder });
}
