import { acceptance, describeDifference, findClaims } from '../../core/claims.ts';
import { describeTrouble } from '../../core/compare-secrets.ts';
import { type Finding, well, worthKnowing, wrong } from '../../core/doctor/finding.ts';
import { judgeConflicts, judgeForwarding, judgePorts, type Scene } from '../../core/doctor/judge-network.ts';
import { printable } from '../../core/errors.ts';
import { judgePeer } from '../../core/health.ts';
import { findOwnPeer } from '../../core/own-peer.ts';
import { findTroubles } from '../find-secret-troubles.ts';
import { findDrops } from '../forward-drops.ts';
import { describeRotation } from '../rotation/describe.ts';
import type { Survey } from '../survey.ts';
import { secondsNow, type Tools } from '../tools.ts';
import type { NetworkCheck } from './examination.ts';

/** A network on this host, without a word from anybody else. */
export const networkChecks: readonly NetworkCheck[] = [
  {
    subject: 'ports',
    examine: async ({ inspector }, seen) => judgePorts(sceneOf(seen), await inspector.udpPorts()),
  },
  {
    subject: 'forwarding',
    async examine(tools, seen) {
      const drops = seen.actual.link === null ? [] : await findDrops(tools, seen);
      return seen.state.enabled ? judgeForwarding(sceneOf(seen), drops) : [];
    },
  },
  {
    subject: 'network',
    examine: async (tools, seen) => [
      examineTunnel(seen),
      ...(await examinePeers(tools, seen)),
      ...judgeConflicts(sceneOf(seen)),
    ],
  },
  { subject: 'pins', examine: async (_, seen) => examinePins(seen) },
  { subject: 'key', examine: async (_, { state }) => examineKey(state) },
];

function sceneOf({ state, desired, actual }: Survey): Scene {
  const { map, peer } = state.membership;
  const { type, endpoint } = state.enrollment;
  const self = findOwnPeer(map, state) ?? {
    ...{ ...peer, type, endpoint, publicKey: state.keyPair.publicKey },
    ...{ routes: [], withdrawn: [] },
  };
  return { map, self, enabled: state.enabled, desired, actual };
}

function examineTunnel({ state, listed, changes, actual }: Survey): Finding {
  const { interface: link, membership, service } = state;
  const looked = `${link}, the tunnel of network ${printable(membership.map.name)}`;
  if (!listed) {
    const found = `${service.url} no longer lists this host`;
    return wrong('network', looked, found, 'cpn join with a new key, which replaces this membership');
  }
  if (!state.enabled) return worthKnowing('network', looked, 'was taken down', `cpn up ${link}`);
  if (actual.link === null) return wrong('network', looked, 'is not there', `cpn reconcile ${link}`);
  if (changes.length === 0) return well('network', looked, 'is as it should be');
  return wrong(
    'network',
    looked,
    `differs in ${changes.length} from what it should be`,
    `cpn plan ${link}, and cpn reconcile ${link}`,
  );
}

/** Peers that should answer and do not; who never had a handshake may be off. */
async function examinePeers(tools: Tools, { state, actual }: Survey): Promise<Finding[]> {
  const { interface: link, membership } = state;
  const { silent } = await tools.store.readNotes(link);
  const now = secondsNow(tools);
  const peers = actual.device?.peers ?? [];
  const looked = `handshakes of ${link}`;
  if (peers.length === 0) return [];
  const stale = peers.filter((peer) => judgePeer(peer, now, silent[peer.publicKey]) === 'stale');
  const names = new Map(membership.map.peers.map(({ publicKey, name, address }) => [publicKey, { name, address }]));
  const found = stale.map(({ publicKey }) => {
    const { name, address } = names.get(publicKey) ?? { name: publicKey, address: publicKey };
    return wrong('network', looked, `${printable(name)} does not answer`, `cpn explain ${address}`);
  });
  const heard = peers.filter(({ latestHandshake }) => latestHandshake !== null).length;
  if (found.length > 0) return found;
  const sum = `${heard} of ${peers.length} peers were heard`;
  return heard > 0 ? [well('network', looked, sum)] : [worthKnowing('network', looked, sum, 'cpn explain ADDRESS')];
}

function examinePins({ state, actual }: Survey): Finding[] {
  const { map } = state.membership;
  const { interface: link } = state;
  const looked = `what the peers of ${link} are known by`;
  const claims = findClaims(map, state.pins).map((claim) =>
    wrong(
      'pins',
      looked,
      `${printable(claim.name)} is said to have ${describeDifference(claim)}, without its own word for it`,
      `find out who changed it; if it is right: ${acceptance(claim, link)}`,
    ),
  );
  const secrets = findTroubles(state, actual).map((trouble) =>
    wrong(
      'pins',
      `the network secret of ${link}`,
      printable(describeTrouble(trouble)),
      `cpn set ${link} --network-secret-file PATH, here or there`,
    ),
  );
  const found = [...claims, ...secrets];
  return found.length > 0 ? found : [well('pins', looked, 'nobody is said to be another')];
}

function examineKey(state: Survey['state']): Finding[] {
  const looked = `the key of ${state.interface}`;
  const pending = describeRotation(state);
  if (pending !== null) return [worthKnowing('key', looked, pending, `cpn reconcile ${state.interface}`)];
  return [well('key', looked, `is in use since ${state.keySince}; no change of it is under way`)];
}
