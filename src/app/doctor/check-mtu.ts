import type { Address } from '../../core/cidr.ts';
import { familyOf } from '../../core/cidr.ts';
import type { Finding } from '../../core/doctor/finding.ts';
import { wrong } from '../../core/doctor/finding.ts';
import {
  type Echoes,
  judgeOuterEchoes,
  judgeTunnelEchoes,
  nextSize,
  overhead,
  overheadV6,
} from '../../core/doctor/judge-mtu.ts';
import { isFresh } from '../../core/health.ts';
import type { Survey } from '../survey.ts';
import { secondsNow } from '../tools.ts';
import type { DoctorTools, NetworkCheck } from './examination.ts';

/** Milliseconds for one echo; a lost one is asked for twice, so that a packet lost by chance is no black hole. */
const echoDeadline = 1_000;
/** Of a packet that passes everywhere. */
const small = 84;
/** Peers that are tried, where there are many. */
const mostPeers = 8;

/** Tries out packets of full size: to the peers that were heard lately, through the tunnel and outside of it. */
export const mtuChecks: readonly NetworkCheck[] = [{ subject: 'mtu', examine: examineMtu }];

async function examineMtu(tools: DoctorTools, { state, actual }: Survey): Promise<Finding[]> {
  const { link, device, surroundings } = actual;
  if (link === null || device === null) return [];
  const { underlayMtu } = surroundings;
  if (underlayMtu !== null && link.mtu + overhead > underlayMtu) {
    const found = `${link.mtu}, with which its packets do not fit ${underlayMtu}, the MTU of the way out`;
    const remedy = `cpn set ${link.name} --mtu ${Math.max(576, underlayMtu - overheadV6)}`;
    return [wrong('mtu', `the MTU of ${link.name}`, found, remedy)];
  }
  const now = secondsNow(tools);
  const heard = device.peers.filter(({ latestHandshake }) => isFresh(latestHandshake, now)).slice(0, mostPeers);
  const names = new Map(state.membership.map.peers.map((peer) => [peer.publicKey, peer]));
  const findings = heard.map(async ({ publicKey, endpoint }) => {
    const peer = names.get(publicKey);
    const through = peer && (await tryOut(tools, peer.address, `${peer.name} (${peer.address})`, link.mtu));
    const around = familyOf(endpoint?.host ?? peer?.address ?? ('0.0.0.0' as Address)) === 4 ? overhead : overheadV6;
    const outside = endpoint && (await tryOut(tools, endpoint.host, endpoint.host, link.mtu + around));
    return [
      ...(through ? [judgeTunnelEchoes(through, link.name)] : []),
      ...(outside ? [judgeOuterEchoes(outside, link.name)] : []),
    ];
  });
  return (await Promise.all(findings)).flat();
}

/** Finds the largest packet that passes, by halves: ten sizes at the most. */
async function tryOut({ inspector }: DoctorTools, address: Address, target: string, full: number): Promise<Echoes> {
  const passes = async (bytes: number) =>
    (await inspector.echoes(address, bytes, echoDeadline)) || inspector.echoes(address, bytes, echoDeadline);
  if (await passes(full)) return { target, full, passed: full };
  if (!(await passes(small))) return { target, full, passed: null };
  let passed = small;
  let lost = full;
  for (let size = nextSize(passed, lost); size !== null; size = nextSize(passed, lost)) {
    if (await passes(size)) passed = size;
    else lost = size;
  }
  return { target, full, passed };
}
