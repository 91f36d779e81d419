import type { NetworkRules } from '../../../contract/rules.ts';
import type { Prefix } from '../../../core/net/cidr.ts';
import type { RuledNetwork, RuledPeer } from '../../domain/rules/endpoints.ts';
import { listEnforcement } from '../../domain/rules/enforcement.ts';
import { type NamedThings, showNames } from '../../domain/rules/names.ts';
import { listSelectors } from '../../domain/rules/rule-set.ts';
import { listWarnings } from '../../domain/rules/warnings.ts';
import { readService } from '../../push/to-contract.ts';
import type { Revision } from '../../store/changes.ts';
import type { StoredNetwork } from '../../store/networks.ts';
import { listAllPeers } from '../../store/peers/peer-lists.ts';
import type { StoredPeer } from '../../store/peers/peers.ts';
import { readRules, type StoredRules } from '../../store/rules.ts';
import type { Db } from '../../store/tables.ts';
import { isUnlisted } from '../suspension.ts';

/** The rules of a network, with what they depend on. */
export interface Ruled {
  readonly stored: StoredRules;
  readonly named: NamedThings;
  /** The peers in its map, and its routes. */
  readonly network: RuledNetwork;
}

export async function readRuled(db: Db, network: StoredNetwork): Promise<Ruled> {
  const { id, range, routes } = network;
  const stored = await readRules(db, id);
  const peers = await listAllPeers(db, id);
  const listed = peers.filter((peer) => !isUnlisted(peer));
  return {
    stored,
    named: { range, routes, peers, gone: stored.gone, stored: listSelectors(stored, stored.earlier) },
    network: { routes, peers: listed.map((peer) => toRuledPeer(network, peer)) },
  };
}

function toRuledPeer(network: StoredNetwork, peer: StoredPeer): RuledPeer {
  const { assigned, withdrawn } = readService(network, peer);
  const isConnector = peer.peer_type === 'connector';
  return {
    ...{ id: peer.id, name: peer.name, address: peer.address, isConnector },
    tags: peer.tags === null ? [] : (JSON.parse(peer.tags) as string[]),
    enforcesRules: peer.enforces_rules === 1,
    followsRelay: peer.follows_relay === 1,
    hasEndpoint: peer.endpoint !== null,
    served: isConnector ? assigned.filter((route) => !withdrawn.includes(route)) : [],
    profile: peer.profile === null ? null : (JSON.parse(peer.profile) as { routes: Prefix[] }).routes,
  };
}

/** Rules as users read them, with the number of their change for an ETag. */
export interface ShownRules {
  readonly change: Revision;
  readonly rules: NetworkRules;
}

export function showRules({ stored, named, network }: Ruled): ShownRules {
  const { mode, rules, tests, require_enforcement } = showNames(stored, named);
  return {
    change: stored.change,
    rules: {
      ...{ mode, rules: [...rules], tests: [...tests], require_enforcement },
      enforcement: listEnforcement(network.peers),
      warnings: listWarnings(stored, network.peers),
      ...(stored.confirmUntil !== null && { confirm_until: stored.confirmUntil }),
    },
  };
}
