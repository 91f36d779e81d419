import { type Finding, okFinding, problemFinding } from './finding.ts';

/** Seconds by which clocks may differ: a Date has whole seconds, and a reply takes time. */
const tolerance = 60;

/** Both times are in seconds since the epoch; `now` is halfway between request and reply. */
export function checkServiceClock(url: string, now: number, serviceNow: number): Finding {
  const checked = `the clock, by the Date of ${url}`;
  const ahead = Math.round(now - serviceNow);
  if (Math.abs(ahead) <= tolerance) return okFinding('clock', checked, 'agrees within a minute');
  const how = `is ${describeSeconds(Math.abs(ahead))} ${ahead > 0 ? 'ahead' : 'behind'}`;
  return problemFinding('clock', checked, how, 'timedatectl set-ntp true, or correct the clock that is wrong');
}

/** An instant that this host or WireGuard recorded. All such instants should be past. */
export interface NotedInstant {
  readonly what: string;
  /** Seconds since the epoch. */
  readonly at: number;
}

/**
 * Checks the clock against recorded instants. WireGuard's peers refuse handshakes with timestamps
 * earlier than the last (TAI64N, whitepaper 5.1), so a clock that went back keeps the tunnel down.
 */
export function checkOwnClock(moments: readonly NotedInstant[], now: number): Finding {
  const checked = 'the clock, compared with stored times';
  const latest = moments.toSorted((one, other) => other.at - one.at)[0];
  if (latest === undefined || latest.at - now <= tolerance) return okFinding('clock', checked, 'did not go back');
  return problemFinding(
    'clock',
    checked,
    `${latest.what} is ${describeSeconds(latest.at - now)} in the future: the clock went back, and peers refuse handshakes until it reaches that time`,
    'timedatectl set-ntp true, then cpn down, and cpn up',
  );
}

function describeSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}
