import type { PathState } from '../../contract/health.ts';
import { aliases } from '../aliases.ts';
import type { PeerHealth } from '../service.ts';
import { Field, type Source } from './field.ts';
import { decodeId } from './id.ts';
import { maxPeers } from './network.ts';

const states = ['online', 'offline', 'unknown'] as const satisfies readonly PeerHealth['state'][];
const pathStates = ['direct', 'relayed', 'stale', 'down', 'never'] as const satisfies readonly PathState[];
/** The contract has 500. */
const maxPaths = 4096;

/** What is observed of each peer. Only its id must be there: what a later service says in other words is unknown. */
export function decodeHealth(body: unknown, source: Source): PeerHealth[] {
  const peers = Field.ofReply(body, source).as('health').need(aliases.health.peers).items(maxPeers);
  return peers.map((peer) => ({
    id: decodeId(peer.need(aliases.health.id)),
    state: peer.tryFind(aliases.health.state, (state) => state.oneOf(states)) ?? 'unknown',
    reachable_by: peer.tryFind(aliases.health.reachableBy, (count) => count.integer()) ?? 0,
    witnesses: peer.tryFind(aliases.health.witnesses, (count) => count.integer()) ?? 0,
    last_seen: peer.tryFind(aliases.health.lastSeen, (at) => at.instant()),
    version: peer.tryFind(aliases.health.version, (version) => version.text(64)),
    paths: (peer.tryFind(aliases.health.paths, (paths) => paths.items(maxPaths)) ?? []).flatMap(decodePath),
  }));
}

function decodePath(path: Field): PeerHealth['paths'] {
  return path.attempt<PeerHealth['paths']>(
    (at) => [
      {
        peer: decodeId(at.need(aliases.health.peer)),
        path: at.need(aliases.health.path).oneOf(pathStates),
      },
    ],
    () => [],
  );
}
