import { type Finding, well, worthKnowing, wrong } from './finding.ts';

/** What echoes through the tunnel, or towards an endpoint, showed; in bytes of the whole IP packet. */
export interface Echoes {
  /** Whom they were sent to, for a person. */
  readonly target: string;
  /** The largest that should pass. */
  readonly full: number;
  /** The largest that passed; null where not even a small one was answered. */
  readonly passed: number | null;
}

/** Judges echoes through the tunnel, whose packets may not be fragmented. */
export function judgeTunnelEchoes({ target, full, passed }: Echoes, link: string): Finding {
  const looked = `packets of ${full} bytes to ${target} through ${link}`;
  if (passed === null) return worthKnowing('mtu', looked, 'it answers no ping, so that nothing can be tried out');
  if (passed >= full) return well('mtu', looked, 'pass');
  return wrong(
    'mtu',
    looked,
    `vanish, while those of up to ${passed} bytes pass: a black hole, in which downloads stall though pings work`,
    `cpn set ${link} --mtu ${Math.max(leastMtu, passed)}, on both ends`,
  );
}

/** Judges echoes outside the tunnel as large as what carries the tunnel's largest; those may still pass in fragments. */
export function judgeOuterEchoes({ target, full, passed }: Echoes, link: string): Finding {
  const looked = `packets of ${full} bytes, in which ${link}'s largest travel, to ${target}`;
  if (passed === null) return worthKnowing('mtu', looked, 'it answers no ping, so that nothing can be tried out');
  if (passed >= full) return well('mtu', looked, 'pass whole');
  return worthKnowing(
    'mtu',
    looked,
    `do not pass whole; those of up to ${passed} bytes do`,
    `cpn set ${link} --mtu ${Math.max(leastMtu, passed - overhead)} if the tunnel is slow`,
  );
}

/** What a tunnel may be told; `--mtu` takes no less. */
const leastMtu = 576;

/** Bytes around a packet of the tunnel over IPv4, and over IPv6: IP, UDP, and WireGuard's own 32. */
export const overhead = 60;
export const overheadV6 = 80;

/**
 * The next size to try between one that passed and one that did not; null when they are as near as they need to be. An MTU that is
 * some bytes too small costs nothing.
 */
export function nextSize(passed: number, lost: number): number | null {
  return lost - passed <= 8 ? null : Math.floor((passed + lost) / 2);
}
