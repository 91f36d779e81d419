import { expectCpnError, NotJoined } from '../../core/errors/index.ts';
import { findUnmet, type ReadinessCondition } from '../../core/health/readiness.ts';
import type { Actual } from '../../core/host-state/actual.ts';
import type { Address } from '../../core/net/cidr.ts';
import { problem, toSentence } from '../../core/problems/problem.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { findDeletion } from '../reconcile/deleted-network.ts';
import { observeOptionsFor } from '../reconcile/observe-options.ts';
import { isJoined, selectStates } from '../select.ts';
import { secondsNow, type Tools } from '../tools.ts';

/** Whether a network is as it was waited for. */
export interface Readiness {
  readonly interface: string;
  /** What it lacks; null when it is ready. */
  readonly missing: string | null;
}

/** Seconds between two looks at the host. */
const pause = 0.25;

/**
 * Seconds between two datagrams to a peer. WireGuard sends an unanswered handshake again after 5 s
 * (REKEY_TIMEOUT).
 */
const triggerInterval = 5;
/** Of one network: one answer is enough. */
const mostTriggered = 16;

interface ObservedReadiness extends Readiness {
  /** Where a handshake is missing: the peers with which a datagram starts one. */
  readonly silent?: readonly Address[];
}

/**
 * Waits until the condition holds for the networks that `network` names, and returns their
 * states. Reads the host only, and changes nothing. It also waits for a join that has begun.
 * WireGuard makes a handshake only when there is something to send: while it waits for one, it
 * sends datagrams to the peers with an endpoint.
 *
 * @param timeout seconds, after which it returns what it saw last; 0 looks once
 * @throws NotJoined when something is named that this host has not joined, or when it has joined no
 *   network
 */
export async function waitFor(
  tools: Tools,
  network: string | undefined,
  condition: ReadinessCondition,
  timeout: number,
): Promise<Readiness[]> {
  const deadline = tools.monotonic() + timeout;
  let reported = '';
  let nextTrigger = tools.monotonic();
  for (;;) {
    const networks = await readNetworks(tools, network, condition);
    const left = deadline - tools.monotonic();
    if (isReady(networks) || left <= 0) return networks;
    const missing = describeMissing(networks);
    if (missing !== reported) tools.progress(`waiting: ${missing}`);
    reported = missing;
    const peers = networks.flatMap(({ interface: link, silent = [] }) => silent.map((address) => ({ address, link })));
    if (peers.length > 0 && tools.monotonic() >= nextTrigger) {
      for (const { address, link } of peers) {
        // What does not go into the tunnel would go to somewhere else.
        if ((await tools.host.route(address)).link === link) await tools.host.triggerHandshake(address);
      }
      nextTrigger = tools.monotonic() + triggerInterval;
    }
    await tools.sleep(1000 * Math.min(pause, left));
  }
}

/** True when none of the networks lacks anything. */
export function isReady(networks: readonly Readiness[]): boolean {
  return networks.every(({ missing }) => missing === null);
}

/** What is lacking, as one line. */
export function describeMissing(networks: readonly Readiness[]): string {
  return networks.flatMap(({ missing }) => missing ?? []).join('; ');
}

async function readNetworks(
  tools: Pick<Tools, 'host' | 'store' | 'now'>,
  network: string | undefined,
  condition: ReadinessCondition,
): Promise<ObservedReadiness[]> {
  const { states, unreadable } = await selectStates(tools.store, network);
  if (states.length + unreadable.length === 0) throw new NotJoined('no network is joined; join one with "cpn join"');
  const readiness = states.map(async (state) => ({
    interface: state.interface,
    ...(await findMissing(tools, state, condition)),
  }));
  const unseen = unreadable.map(({ interface: link, error }) => ({ interface: link, missing: error.message }));
  return [...(await Promise.all(readiness)), ...unseen];
}

async function findMissing(
  tools: Pick<Tools, 'host' | 'now'>,
  state: State,
  condition: ReadinessCondition,
): Promise<Omit<ObservedReadiness, 'interface'>> {
  const { interface: link } = state;
  if (!isJoined(state)) return { missing: `the join of ${link} is not finished` };
  try {
    const actual = await tools.host.observe({ ...observeOptionsFor(state), firewall: false, sysctls: [] });
    const { address } = state.membership.peer;
    const lack = findUnmet(condition, { link, address }, actual, secondsNow(tools));
    const down = findDeletion(state) ?? (state.enabled ? null : problem('taken-down', { interface: link }));
    if (lack !== null && down !== null) return { missing: toSentence(down) };
    const isSilent = lack !== null && condition.for === 'handshake' && actual.link?.up === true;
    return { missing: lack, silent: isSilent ? findDialled(state, actual) : [] };
  } catch (error) {
    // While a host boots, what fails now may work at the next look.
    return { missing: expectCpnError(error).message };
  }
}

function findDialled({ membership: { map } }: Joined, { device }: Actual): Address[] {
  const dialled = new Set(device?.peers.flatMap((peer) => (peer.endpoint === null ? [] : [peer.publicKey])));
  return map.peers.flatMap((peer) => (dialled.has(peer.publicKey) ? [peer.address] : [])).slice(0, mostTriggered);
}
