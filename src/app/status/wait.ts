import { expectCpnError, NotJoined } from '../../core/errors/index.ts';
import { findUnmet, type ReadinessCondition } from '../../core/health/readiness.ts';
import type { Actual } from '../../core/host-state/actual.ts';
import type { Address } from '../../core/net/cidr.ts';
import { toSentence } from '../../core/problems/problem.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { findDown } from '../reconcile/deleted-network.ts';
import { observeOptionsFor } from '../reconcile/observe-options.ts';
import { isJoined, selectStates } from '../select.ts';
import { secondsNow, type Tools } from '../tools.ts';

export interface Readiness {
  readonly interface: string;
  /** What is missing; null if ready. */
  readonly missing: string | null;
}

/** Seconds between two observations. */
const pause = 0.25;

/** Seconds between datagrams to a peer: WireGuard repeats a handshake after 5 s (REKEY_TIMEOUT). */
const triggerInterval = 5;
/** Per network: one answer is enough. */
const mostTriggered = 16;

interface ObservedReadiness extends Readiness {
  /** The peers without a handshake to which a datagram starts one. */
  readonly silent?: readonly Address[];
}

/**
 * Waits until the condition holds for the networks that `network` names, including joins in
 * progress. Returns their states, and changes nothing. WireGuard starts a handshake only to send
 * packets, so datagrams go to peers with an endpoint while a handshake is awaited.
 *
 * @param timeout seconds, after which it returns the last observation; 0 observes once
 * @throws NotJoined if this host has not joined the named network, or any network
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
        // Packets that do not enter the tunnel would reach another host.
        if ((await tools.host.route(address)).link === link) await tools.host.triggerHandshake(address);
      }
      nextTrigger = tools.monotonic() + triggerInterval;
    }
    await tools.sleep(1000 * Math.min(pause, left));
  }
}

export function isReady(networks: readonly Readiness[]): boolean {
  return networks.every(({ missing }) => missing === null);
}

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
    const down = findDown(state);
    if (lack !== null && down !== null) return { missing: toSentence(down) };
    const isSilent = lack !== null && condition.for === 'handshake' && actual.link?.up === true;
    return { missing: lack, silent: isSilent ? findDialled(state, actual) : [] };
  } catch (error) {
    // A failure during boot may be gone at the next observation.
    return { missing: expectCpnError(error).message };
  }
}

function findDialled({ membership: { map } }: Joined, { device }: Actual): Address[] {
  const dialled = new Set(device?.peers.flatMap((peer) => (peer.endpoint === null ? [] : [peer.publicKey])));
  return map.peers.flatMap((peer) => (dialled.has(peer.publicKey) ? [peer.address] : [])).slice(0, mostTriggered);
}
