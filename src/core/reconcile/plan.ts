import type { PublicKey } from '../crypto/keys.ts';
import { unreadable, withoutTool } from '../forward/own-table.ts';
import type { Firewall } from '../forward/packet-rule.ts';
import type { Actual } from '../host-state/actual.ts';
import type { Receipt } from '../host-state/receipt.ts';
import type { Desired } from './desired.ts';
import { planDevice, planPeerRemoval, planUnmarking } from './plan-device.ts';
import { planDns } from './plan-dns.ts';
import { planFirewall, planForwardingOff, planForwardingOn, planSysctls } from './plan-forwarding.ts';
import { planHosts } from './plan-hosts.ts';
import { planCreation, planSettings } from './plan-link.ts';
import { planTightening } from './plan-tightening.ts';
import type { Step } from './step.ts';

/**
 * The steps from `actual` to `desired` in order: additions before removals. After them, a new plan
 * has no step. For a host that cannot be observed, the steps of {@link planTightening}.
 *
 * @param now seconds since the epoch, from which the age of a handshake is computed
 * @param moved peers with another endpoint than last applied, which overrides a learned endpoint
 * @param last the packet rules of the last plan, which may be loaded
 */
export function plan(
  desired: Desired,
  actual: Actual,
  now: number,
  moved: ReadonlySet<PublicKey> = new Set(),
  last: Firewall | null = null,
): readonly Step[] {
  if (actual.unread !== undefined) return planTightening(desired, actual, { now, moved });
  return [
    ...planForwardingOff(desired, actual),
    ...planCreation(desired, actual),
    // Packet rules are loaded before the interface is up: from then on other hosts may forward into
    // it.
    ...planFirewall(desired, actual, last),
    ...planDevice(desired, actual, { now, moved }),
    ...planSettings(desired, actual),
    ...planUnmarking(desired, actual),
    ...planPeerRemoval(desired, actual, { now }),
    ...planSysctls(desired, actual),
    ...planForwardingOn(desired, actual),
    ...planHosts(desired, actual),
    // A server behind a route is reached only now.
    ...planDns(desired, actual),
  ];
}

/**
 * True if we created an interface of our name: it has our mark or our key, or the receipt has it
 * and it has neither mark nor key. The last is what remains if cpn is killed during the creation.
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

/** True if the receipt, written before, has the table, or all its rules have our comment. */
export function isOurFirewall({ firewall }: Pick<Actual, 'firewall'>, receipt: Receipt): boolean {
  if (firewall === null || receipt.some(({ made }) => made === 'firewall')) return true;
  if (firewall.includes(unreadable) || firewall.includes(withoutTool)) return true;
  return firewall.every((mark) => /^\S+ cpn /.test(mark));
}
