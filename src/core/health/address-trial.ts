import type { PublicKey } from '../crypto/keys.ts';
import type { ActualPeer } from '../host-state/actual.ts';
import type { Address } from '../net/cidr.ts';
import { isRenewed } from './peer-health.ts';

/** One address of a name, judged by WireGuard's counters. Times are monotonic seconds. */
export interface AddressTrial {
  readonly address: Address;
  /** Counters of the peers at the last answer, or at the start of the trial. */
  readonly baseline: ReadonlyMap<PublicKey, TrialCounters>;
  /** True if only a new answer counts: this host moved, or another address was silent. */
  readonly needsAnswer: boolean;
  /** How often an answer was needed but nothing had been sent. */
  readonly idleLooks: number;
  /** Since when sent packets have no answer. Null while nothing is sent, or after an answer. */
  readonly unanswered: { readonly since: number; readonly txBytes: number } | null;
  /** Addresses of the name that were silent since the last answer. */
  readonly failures: number;
}

export interface TrialVerdict {
  readonly trial: AddressTrial;
  /** True if packets were sent for as long as a handshake may take, without an answer. */
  readonly isSilent: boolean;
  /** Seconds until the next observation can change the verdict; null if nothing is pending. */
  readonly lookIn: number | null;
}

interface Look {
  readonly now: number;
  readonly wall: number;
  readonly choices: number;
  readonly answeredLast?: Address | null;
}

type TrialCounters = Pick<ActualPeer, 'rxBytes' | 'txBytes' | 'latestHandshake'>;

/** Seconds for the first attempts: WireGuard repeats a handshake every 5 s (REKEY_TIMEOUT). */
const firstPatience = 15;
/**
 * Seconds once each address was tried: WireGuard gives up after 90 s (MAX_TIMER_HANDSHAKES). While
 * another address was the last to answer, `firstPatience` applies: an absent peer returns there.
 */
const laterPatience = 90;
/** Seconds between observations while an answer is needed and nothing was sent; how many. */
const idlePause = 5;
const mostIdleLooks = 3;

const unheard: TrialCounters = { rxBytes: 0, txBytes: 0, latestHandshake: null };

/** All bytes sent before to a peer that never answered count as unanswered. */
export function beginTrial(
  address: Address,
  peers: readonly ActualPeer[],
  { needsAnswer = false, failures = 0 }: Partial<Pick<AddressTrial, 'needsAnswer' | 'failures'>> = {},
): AddressTrial {
  const baseline = peers.map((peer): [PublicKey, TrialCounters] => {
    return [peer.publicKey, peer.latestHandshake === null ? unheard : peer];
  });
  return { address, baseline: new Map(baseline), needsAnswer, idleLooks: 0, unanswered: null, failures };
}

/**
 * Judges a trial. In `at`, `now` is monotonic seconds, `wall` seconds since the epoch, `choices`
 * the number of addresses to try, and `answeredLast` the last address that answered, or null.
 */
export function judgeTrial(
  trial: AddressTrial,
  peers: readonly ActualPeer[],
  { now, wall, choices, answeredLast = null }: Look,
): TrialVerdict {
  const before = (peer: ActualPeer) => trial.baseline.get(peer.publicKey) ?? unheard;
  const hasAnswered = peers.some(
    (peer) => peer.rxBytes > before(peer).rxBytes || (peer.latestHandshake ?? 0) > (before(peer).latestHandshake ?? 0),
  );
  if (hasAnswered) return { trial: beginTrial(trial.address, peers), isSilent: false, lookIn: null };
  const isInUse = !trial.needsAnswer && peers.some((peer) => isRenewed(peer.latestHandshake, wall));
  if (isInUse || !peers.some((peer) => peer.txBytes > before(peer).txBytes)) {
    const isAwaited = trial.needsAnswer && trial.idleLooks < mostIdleLooks;
    const idle = { ...trial, idleLooks: trial.idleLooks + 1, unanswered: null };
    return { trial: idle, isSilent: false, lookIn: isAwaited ? idlePause : null };
  }
  const txBytes = peers.reduce((total, peer) => total + peer.txBytes, 0);
  const isSecondBest = answeredLast !== null && answeredLast !== trial.address;
  const patience = trial.failures < choices || isSecondBest ? firstPatience : laterPatience;
  const { unanswered } = trial;
  if (unanswered === null) {
    return { trial: { ...trial, unanswered: { since: now, txBytes } }, isSilent: false, lookIn: patience };
  }
  const left = patience - (now - unanswered.since);
  if (left > 0) return { trial, isSilent: false, lookIn: left };
  if (txBytes > unanswered.txBytes) return { trial, isSilent: true, lookIn: null };
  // The packets needed no answer, such as the last packet of a session, or WireGuard gave up.
  const baseline = new Map(peers.map((peer): [PublicKey, TrialCounters] => [peer.publicKey, peer]));
  return { trial: { ...trial, baseline, unanswered: null }, isSilent: false, lookIn: null };
}
