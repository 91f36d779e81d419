import type { Actual } from './actual.ts';
import type { Desired } from './desired.ts';
import { unreadable, withoutTool } from './firewall.ts';
import type { PublicKey } from './keys.ts';
import { isSettledForGood, planDevice, planPeerRemoval, planUnmarking } from './plan-device.ts';
import { planFirewall, planOpening, planShutting, planSysctls } from './plan-forwarding.ts';
import { planHosts } from './plan-hosts.ts';
import { planCreation, planSettings } from './plan-link.ts';
import type { Receipt } from './receipt.ts';
import type { Step } from './step.ts';

/**
 * The steps that turn `actual` into `desired`, in the order in which they are applied: additions before removals, and
 * nothing that is right already. Applying them and planning again gives no step.
 *
 * @param now seconds since the epoch, against which the age of a handshake is reckoned
 * @param moved peers whose endpoint is another than the one that was applied last: it counts more than a learned one
 */
export function plan(
  desired: Desired,
  actual: Actual,
  now: number,
  moved: ReadonlySet<PublicKey> = new Set(),
): readonly Step[] {
  if (calm.get(actual) === desired) return [];
  const steps: Step[] = [
    ...planShutting(desired, actual),
    ...planCreation(desired, actual),
    // Before the interface is up, as others may forward into it from then on.
    ...planFirewall(desired, actual),
    ...planDevice(desired, actual, { now, moved }),
    ...planSettings(desired, actual),
    ...planUnmarking(desired, actual),
    ...planPeerRemoval(desired, actual),
    ...planSysctls(desired, actual),
    ...planOpening(desired, actual),
    ...planHosts(desired, actual),
  ];
  if (steps.length === 0 && isSettledForGood(desired, actual)) calm.set(actual, desired);
  return steps;
}

/** Hosts that were found to be as they should be, whatever the time is. */
const calm = new WeakMap<Actual, Desired>();

/**
 * True when an interface of our name is one that we made: by our mark on it, by our key in it, or because we had set out to make it
 * and nobody has given it either; that is what we leave when we are killed in between.
 */
export function isOurs(
  { alias, keyPair }: Pick<Desired, 'alias' | 'keyPair'>,
  { link, device }: Actual,
  receipt: Receipt,
): boolean {
  if (link === null || link.alias === alias || device?.publicKey === keyPair.publicKey) return true;
  const isBlank = link.alias === null && device?.publicKey === null && device.peers.length === 0;
  return isBlank && receipt.some(({ made }) => made === 'interface');
}

/**
 * True when a table of packet rules of our name is one that we made: by the receipt, which is written before, or by our comment on
 * each of its rules. An empty one is nobody's loss.
 */
export function isOurFirewall({ firewall }: Pick<Actual, 'firewall'>, receipt: Receipt): boolean {
  if (firewall === null || receipt.some(({ made }) => made === 'firewall')) return true;
  if (firewall.includes(unreadable) || firewall.includes(withoutTool)) return true;
  return firewall.every((mark) => /^\S+ cpn /.test(mark));
}
