import { describePathMtu, leastPathMtu, type PathMtu } from '../health/path-mtu.ts';
import type { Peer } from '../map/model.ts';
import { type Finding, noteFinding, okFinding, problemFinding } from './finding.ts';

/** The results of echoes through the tunnel, or to an endpoint, in bytes of the whole IP packet. */
export interface Echoes {
  /** The target, for display. */
  readonly target: string;
  /** The largest packet that should pass. */
  readonly full: number;
  /** The largest packet that passed; null if not even a small one was answered. */
  readonly passed: number | null;
}

export function checkMeasured(link: string, pathMtu: PathMtu, fitted: number, peers: readonly Peer[]): Finding {
  return okFinding(
    'mtu',
    `the MTU of ${link}`,
    `${pathMtu.mtu}, ${describePathMtu(pathMtu, peers)}; ${fitted} fits the underlay`,
  );
}

/** Packets in the tunnel must not be fragmented. `isAdaptive`: the daemon may change the MTU. */
export function checkTunnelEchoes({ target, full, passed }: Echoes, link: string, isAdaptive: boolean): Finding {
  const checked = `packets of ${full} bytes to ${target} through ${link}`;
  if (passed === null) return noteFinding('mtu', checked, 'it does not answer ping, so the MTU cannot be tested');
  if (passed >= full) return okFinding('mtu', checked, 'pass');
  const remedy = `cpn set ${link} --mtu ${Math.max(leastMtu, passed)}, on both ends`;
  return problemFinding(
    'mtu',
    checked,
    `are lost, while packets up to ${passed} bytes pass: an MTU black hole, where downloads stall although ping works`,
    isAdaptive && passed >= leastPathMtu ? `"cpn run" lowers the MTU within minutes; without it: ${remedy}` : remedy,
  );
}

/** Checks echoes that are as large as the tunnel's outer packets. They may pass in fragments. */
export function checkOuterEchoes({ target, full, passed }: Echoes, link: string): Finding {
  const checked = `packets of ${full} bytes to ${target}, which carry the largest of ${link}`;
  if (passed === null) return noteFinding('mtu', checked, 'it does not answer ping, so the MTU cannot be tested');
  if (passed >= full) return okFinding('mtu', checked, 'pass unfragmented');
  return noteFinding(
    'mtu',
    checked,
    `do not pass unfragmented; packets up to ${passed} bytes do`,
    `cpn set ${link} --mtu ${Math.max(leastMtu, passed - overhead)} if the tunnel is slow`,
  );
}

/** The smallest MTU that `--mtu` accepts. */
const leastMtu = 576;

/** Bytes added to a packet of the tunnel over IPv4 and IPv6: IP, UDP, and WireGuard's own 32. */
export const overhead = 60;
export const overheadV6 = 80;
