import type { PublicKey } from '../crypto/keys.ts';
import type { ActualPeer } from '../host-state/actual.ts';
import type { Address } from '../net/cidr.ts';
import { isRenewed } from './peer-health.ts';

/** The use of one address of a name, as WireGuard's counters show it. Times are seconds of the monotonic clock. */
export interface AddressTrial {
  readonly address: Address;
  /** Counters of the peers when an answer came last, or when the trial began. */
  readonly baseline: ReadonlyMap<PublicKey, TrialCounters>;
  /** Only a new answer counts, and no earlier handshake: this host moved, or another address was silent. */
  readonly needsAnswer: boolean;
  /** How often nothing was sent yet when an answer was needed. */
  readonly idleLooks: number;
  /** Since when packets go out and nothing comes back; null while nothing is sent, or after an answer. */
  readonly unanswered: { readonly since: number; readonly txBytes: number } | null;
  /** Addresses of the name that were silent since the last answer. */
  readonly failures: number;
}

export interface TrialVerdict {
  readonly trial: AddressTrial;
  /** Packets went out for as long as a handshake may take, and nothing came back. */
  readonly isSilent: boolean;
  /** Seconds until the next look can tell more; null where nothing is under way. */
  readonly lookIn: number | null;
}

interface Look {
  readonly now: number;
  readonly wall: number;
  readonly choices: number;
  readonly answeredLast?: Address | null;
}

type TrialCounters = Pick<ActualPeer, 'rxBytes' | 'txBytes' | 'latestHandshake'>;

/** Seconds for the first attempts: WireGuard repeats an unanswered handshake each 5 s (REKEY_TIMEOUT). */
const firstPatience = 15;
/**
 * Seconds once each address was tried: WireGuard gives up after 90 s (MAX_TIMER_HANDSHAKES). While another address answered last, the
 * first patience stays: a peer that was away comes back there.
 */
const laterPatience = 90;
/** Seconds between looks while an answer is needed and nothing was sent, and how many of them there are. */
const idlePause = 5;
const mostIdleLooks = 3;

const unheard: TrialCounters = { rxBytes: 0, txBytes: 0, latestHandshake: null };

/** Begins with an address. Of a peer that never answered, all that was sent before is unanswered. */
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
 * Judges a trial after another look at the peers that have the name.
 *
 * @param at `now` in seconds of the monotonic clock, `wall` in seconds since the epoch, `choices` the number of addresses to try,
 *   `answeredLast` the one that answered last, if any did
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
  // What was sent needed no answer, such as the last packet of a session, or WireGuard gave up.
  const baseline = new Map(peers.map((peer): [PublicKey, TrialCounters] => [peer.publicKey, peer]));
  return { trial: { ...trial, baseline, unanswered: null }, isSilent: false, lookIn: null };
}
