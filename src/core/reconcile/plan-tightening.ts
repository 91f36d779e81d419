import type { Actual, Device } from '../host-state/actual.ts';
import type { DesiredPeer } from '../wg-quick/tunnel-config.ts';
import type { Desired } from './desired.ts';
import { type PlanContext, planDevice, planPeerRemoval } from './plan-device.ts';
import type { Step } from './step.ts';

/**
 * What WireGuard's own table is enough for, where the rest of the host cannot be observed: peers and prefixes that the network takes away
 * go, and a prefix that is in the table moves to the peer that has it now. No other prefix comes into the tunnel.
 */
export function planTightening(desired: Desired, actual: Actual, moment: PlanContext): Step[] {
  const { device } = actual;
  if (device === null) return [];
  const tightened = tighten(desired, device);
  return [...planDevice(tightened, actual, moment), ...planPeerRemoval(tightened, actual)];
}

function tighten(desired: Desired, device: Device): Desired {
  const held = new Set(device.peers.flatMap(({ allowedIps }) => allowedIps));
  const present = new Set(device.peers.map(({ publicKey }) => publicKey));
  const peers = desired.config.peers
    .map((peer) => ({ ...peer, allowedIps: peer.allowedIps.filter((prefix) => held.has(prefix)) }))
    .filter(({ publicKey, allowedIps }) => present.has(publicKey) || allowedIps.length > 0);
  return peersAlone(desired, device, peers);
}

/** Gives WireGuard the peers again that `before` has, after {@link planTightening} took them away. */
export function planRestoration(desired: Desired, before: Device, actual: Actual, moment: PlanContext): Step[] {
  const restored = peersAlone(desired, before, before.peers);
  return [...planDevice(restored, actual, moment), ...planPeerRemoval(restored, actual)];
}

/** Leaves key, port and mark of the interface as they are. */
function peersAlone(desired: Desired, { publicKey }: Device, peers: readonly DesiredPeer[]): Desired {
  return {
    ...desired,
    keyPair: { ...desired.keyPair, publicKey: publicKey ?? desired.keyPair.publicKey },
    config: { ...desired.config, listenPort: null, fwmark: null, peers },
  };
}
