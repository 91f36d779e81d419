import type { PublicKey } from '../crypto/keys.ts';
import { unreadable, withoutTool } from '../forward/own-table.ts';
import type { Actual } from '../host-state/actual.ts';
import type { Receipt } from '../host-state/receipt.ts';
import type { Desired } from './desired.ts';
import { planDevice, planPeerRemoval, planUnmarking } from './plan-device.ts';
import { planFirewall, planForwardingOff, planForwardingOn, planSysctls } from './plan-forwarding.ts';
import { planHosts } from './plan-hosts.ts';
import { planCreation, planSettings } from './plan-link.ts';
import { planTightening } from './plan-tightening.ts';
import type { Step } from './step.ts';

/**
 * The steps that turn `actual` into `desired`, in the order in which they are applied: additions before removals, and
 * nothing that is right already. Applying them and planning again gives no step. Of a host that cannot be observed they are those of
 * {@link planTightening}.
 *
 * @param now seconds since the epoch, from which the age of a handshake is computed
 * @param moved peers whose endpoint is another than the one that was applied last: it counts more than a learned one
 */
export function plan(
  desired: Desired,
  actual: Actual,
  now: number,
  moved: ReadonlySet<PublicKey> = new Set(),
): readonly Step[] {
  if (actual.unread !== undefined) return planTightening(desired, actual, { now, moved });
  return [
    ...planForwardingOff(desired, actual),
    ...planCreation(desired, actual),
    // Before the interface is up, as others may forward into it from then on.
    ...planFirewall(desired, actual),
    ...planDevice(desired, actual, { now, moved }),
    ...planSettings(desired, actual),
    ...planUnmarking(desired, actual),
    ...planPeerRemoval(desired, actual),
    ...planSysctls(desired, actual),
    ...planForwardingOn(desired, actual),
    ...planHosts(desired, actual),
  ];
}

/**
 * True when an interface of our name is one that we made: by our mark on it, by our key in it, or because we had set out to make it
 * and it has neither; that is what we leave when we are killed in between.
 */
export function isOurs(
  { alias, keyPair }: Pick<Desired, 'alias' | 'keyPair'>,
  { link, device, unread }: Actual,
  receipt: Receipt,
): boolean {
  if (unread !== undefined) return device === null || device.publicKey === keyPair.publicKey;
  if (link === null || link.alias === alias || device?.publicKey === keyPair.publicKey) return true;
  const isBlank = link.alias === null && device?.publicKey === null && device.peers.length === 0;
  return isBlank && receipt.some(({ made }) => made === 'interface');
}

/**
 * True when a table of packet rules of our name is one that we made: by the receipt, which is written before, or by our comment on
 * each of its rules. An empty one may be replaced.
 */
export function isOurFirewall({ firewall }: Pick<Actual, 'firewall'>, receipt: Receipt): boolean {
  if (firewall === null || receipt.some(({ made }) => made === 'firewall')) return true;
  if (firewall.includes(unreadable) || firewall.includes(withoutTool)) return true;
  return firewall.every((mark) => /^\S+ cpn /.test(mark));
}
