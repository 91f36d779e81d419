import type { Actual } from './actual.ts';
import type { Desired } from './desired.ts';
import { planDevice, planPeerRemoval, planUnmarking } from './plan-device.ts';
import { planFirewall, planSysctls } from './plan-forwarding.ts';
import { planCreation, planSettings } from './plan-link.ts';
import type { Step } from './step.ts';

/**
 * The steps that turn `actual` into `desired`, in the order in which they are applied: additions before removals, and
 * nothing that is right already. Applying them and planning again gives no step.
 *
 * @param now seconds since the epoch, against which the age of a handshake is reckoned
 */
export function plan(desired: Desired, actual: Actual, now: number): Step[] {
  return [
    ...planCreation(desired, actual),
    ...planDevice(desired, actual, now),
    ...planSettings(desired, actual),
    ...planUnmarking(desired, actual),
    ...planPeerRemoval(desired, actual),
    ...planFirewall(desired, actual),
    ...planSysctls(desired, actual),
  ];
}

/** True when an interface of our name is one that we made: by our mark on it, or by our key in it. */
export function isOurs(desired: Pick<Desired, 'alias' | 'keyPair'>, { link, device }: Actual): boolean {
  return link === null || link.alias === desired.alias || device?.publicKey === desired.keyPair.publicKey;
}
