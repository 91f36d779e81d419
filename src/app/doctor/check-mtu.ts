import {
  checkMeasured,
  checkOuterEchoes,
  checkTunnelEchoes,
  type Echoes,
  overhead,
  overheadV6,
} from '../../core/doctor/check-mtu.ts';
import type { Finding } from '../../core/doctor/finding.ts';
import { problemFinding } from '../../core/doctor/finding.ts';
import { guessSizes } from '../../core/health/path-mtu.ts';
import { isFresh } from '../../core/health/peer-health.ts';
import type { Address } from '../../core/net/cidr.ts';
import { familyOf } from '../../core/net/cidr.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { measurePath } from '../reconcile/measure-path.ts';
import { secondsNow } from '../tools.ts';
import type { DoctorTools, NetworkCheck } from './examination.ts';

const mostPeers = 8;

/** Sends packets of full size to recently active peers, through the tunnel and outside it. */
export const mtuChecks: readonly NetworkCheck[] = [{ subject: 'mtu', examine: examineMtu }];

async function examineMtu(tools: DoctorTools, { state, desired, actual }: Evaluation): Promise<Finding[]> {
  const { link, device, underlay } = actual;
  if (link === null || device === null) return [];
  const { pathMtu, fittedMtu } = desired;
  const { underlayMtu } = underlay;
  if (underlayMtu !== null && link.mtu + overhead > underlayMtu) {
    const found = `${link.mtu} is too large: with encapsulation its packets exceed ${underlayMtu}, the MTU of the underlay`;
    const remedy = `cpn set ${link.name} --mtu ${Math.max(576, underlayMtu - overheadV6)}`;
    return [problemFinding('mtu', `the MTU of ${link.name}`, found, remedy)];
  }
  const now = secondsNow(tools);
  const heard = device.peers.filter(({ latestHandshake }) => isFresh(latestHandshake, now)).slice(0, mostPeers);
  const names = new Map(state.membership.map.peers.map((peer) => [peer.publicKey, peer]));
  const isAdaptive = state.options.mtu === null;
  const tryOut = async (
    address: Address,
    target: string,
    full: number,
    mark: number | null = null,
  ): Promise<Echoes> => {
    return { target, full, passed: await measurePath(tools.host, address, full, guessSizes(null), { mark }) };
  };
  const findings = heard.map(async ({ publicKey, endpoint }) => {
    const peer = names.get(publicKey);
    const through = peer && (await tryOut(peer.address, `${peer.name} (${peer.address})`, link.mtu));
    const outerOverhead =
      familyOf(endpoint?.host ?? peer?.address ?? ('0.0.0.0' as Address)) === 4 ? overhead : overheadV6;
    // WireGuard's own mark: a full tunnel carries all packets without it.
    const outside = endpoint && (await tryOut(endpoint.host, endpoint.host, link.mtu + outerOverhead, device.fwmark));
    return [
      ...(through ? [checkTunnelEchoes(through, link.name, isAdaptive)] : []),
      ...(outside ? [checkOuterEchoes(outside, link.name)] : []),
    ];
  });
  const { peers } = state.membership.map;
  return [
    ...(pathMtu ? [checkMeasured(link.name, pathMtu, fittedMtu, peers)] : []),
    ...(await Promise.all(findings)).flat(),
  ];
}
