import type { Actual, Device } from '../host-state/actual.ts';
import type { DesiredPeer } from '../wg-quick/parse.ts';
import type { Desired } from './desired.ts';
import { type PlanContext, planDevice, planPeerRemoval } from './plan-device.ts';
import type { Step } from './step.ts';

/**
 * Plans what needs only WireGuard's table, if the host cannot be observed: removed peers and
 * prefixes go, and a prefix in the table moves to its present peer. No other prefix is added.
 */
export function planTightening(desired: Desired, actual: Actual, moment: PlanContext): Step[] {
  const { device } = actual;
  if (device === null) return [];
  const tightened = tighten(desired, device);
  return [...planDevice(tightened, actual, moment), ...planPeerRemoval(tightened, actual, moment)];
}

function tighten(desired: Desired, device: Device): Desired {
  const held = new Set(device.peers.flatMap(({ allowedIps }) => allowedIps));
  const present = new Set(device.peers.map(({ publicKey }) => publicKey));
  const peers = desired.config.peers
    .map((peer) => ({ ...peer, allowedIps: peer.allowedIps.filter((prefix) => held.has(prefix)) }))
    .filter(({ publicKey, allowedIps }) => present.has(publicKey) || allowedIps.length > 0);
  return peersAlone(desired, device, peers);
}

/** Restores the peers of `before` in WireGuard, after {@link planTightening} removed them. */
export function planRestoration(desired: Desired, before: Device, actual: Actual, moment: PlanContext): Step[] {
  const restored = peersAlone(desired, before, before.peers);
  return [...planDevice(restored, actual, moment), ...planPeerRemoval(restored, actual, moment)];
}

/** Keeps key, port and mark of the interface. */
function peersAlone(desired: Desired, { publicKey }: Device, peers: readonly DesiredPeer[]): Desired {
  return {
    ...desired,
    keyPair: { ...desired.keyPair, publicKey: publicKey ?? desired.keyPair.publicKey },
    config: { ...desired.config, listenPort: null, fwmark: null, peers },
  };
}
