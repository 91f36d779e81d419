import { findNeverAnswered } from '../health/unanswered.ts';
import type { Peer } from '../map/model.ts';
import { translate } from '../map/prefix-maps.ts';
import type { Address } from '../net/cidr.ts';
import { type RouteReport, remedyOfMissing, remedyOfRefused } from '../routing/route-report.ts';
import { keepsSource } from '../routing/topology/kept-sources.ts';
import { findOwnConnector, isStranded } from '../routing/topology/via-connectors.ts';
import { type Check, inconclusive, passes, stops } from './check.ts';
import type { FoundTarget, PacketTarget } from './find-target.ts';
import { findWantedOwner, type NetworkOnHost, namePeer } from './view.ts';

/** Checks whether the desired state carries packets. After a refused sync, uses the last map. */
export function checkNetwork(address: Address, found: FoundTarget): Check {
  const check = checkTarget(address, found);
  const { refused } = found.view;
  if (check.ok !== true || refused === null) return check;
  const detail = `${check.detail}, by the last known map; sync refused (${refused.by})`;
  return inconclusive('network', detail, refused.error ?? 'see "cpn status"');
}

function checkTarget(address: Address, { view, target }: FoundTarget): Check {
  const { map, enabled, down, unlisted, desired } = view;
  const what = describeTarget(target, view);
  const no = (why: string, remedy: string) => stops('network', `${what}; ${why}`, remedy);
  const lack = enabled ? unlisted : down;
  if (lack !== null) return no(lack.text, lack.remedy ?? 'see "cpn status"');
  if (target.is === 'self') return passes('network', what);
  if (target.is === 'unassigned')
    return no('no peer has this address', '"cpn status" lists the peers; "cpn reconcile" fetches the newest map');
  if (target.is === 'route') return checkReport(address, target.report, what, view);
  const { id, expiresAt } = target.peer;
  if (expiresAt !== undefined && view.expired.includes(id))
    return no(
      `it expired on ${new Date(expiresAt).toISOString()}`,
      `an admin can extend it: cpn peer update ${map.id ?? 'NETWORK'} ${id} --expires 90d`,
    );
  if (isStranded(target.peer, map))
    return no(
      'the connector that it dials is not in the network, so it reaches no peer',
      `make a profile through another connector: cpn export ${map.id ?? 'NETWORK'} --new-peer NAME`,
    );
  const owner = findWantedOwner(address, view);
  if (owner) return passes('network', `${what}, ${describeWay(owner.publicKey, target.peer, view)}`);
  const range = desired.report.find(({ prefix, state }) => prefix === map.cidr && state === 'refused');
  if (range) return no(`it is refused here: ${map.cidr} ${range.reason}`, letThrough(range, view));
  if (target.peer.via)
    return no(
      'it dials only a connector, and this host reaches no connector that relays to it',
      'make a profile through another connector: cpn export NETWORK --new-peer NAME',
    );
  return no(
    'neither it nor this host has an endpoint, and no connector relays',
    'give one of them an endpoint ("cpn set --endpoint"), or add a connector to the network',
  );
}

function describeTarget(target: PacketTarget, { map }: NetworkOnHost): string {
  const network = `network ${map.name}`;
  if (target.is === 'self') return `this host's own address in ${network}`;
  if (target.is === 'unassigned') return `in the range ${map.cidr} of ${network}`;
  if (target.is === 'route') return `behind ${target.report.prefix} of ${network}`;
  return `${target.peer.name} (${target.peer.type}) of ${network}`;
}

/** Describes which peer receives the packets for a peer: itself, or a relay, and why. */
function describeWay(owner: string, peer: Peer, view: NetworkOnHost): string {
  if (owner === peer.publicKey) return 'reached directly';
  const relay = view.map.peers.find((each) => each.publicKey === owner);
  const isRelayed = view.desired.relayedPeers.some((relayed) => relayed.peer.publicKey === peer.publicKey);
  const why = isRelayed
    ? 'it does not answer directly'
    : peer.via
      ? describeDialled(peer, view)
      : 'neither it nor this host has an endpoint';
  if (relay === undefined) return `relayed by ${owner}, as ${why}`;
  const self = view.map.peers.find(({ address }) => address === view.address);
  const isKept = self !== undefined && keepsSource(view.map, relay, self, peer);
  return `relayed by ${relay.name} with ${isKept ? "this host's" : "the relay's"} address, as ${why}`;
}

/** A failure of the only connector that a peer dials is relevant: the peer has no other path. */
function describeDialled(peer: Peer, { map, failed }: NetworkOnHost): string {
  const own = findOwnConnector(peer, map);
  if (own === null) return 'it dials a connector that this host does not have';
  const state = failed.includes(own.id) ? ', which does not answer this host' : '';
  return `it dials only ${own.name}${state}`;
}

function checkReport(address: Address, report: RouteReport, what: string, view: NetworkOnHost): Check {
  const { prefix, via, state, reason, local } = report;
  const as = local === undefined ? '' : `, as ${translate(address, prefix, local)} of its LAN`;
  const no = (why: string, remedy: string) => stops('network', `${what}; ${why}`, remedy);
  if (state === 'served') {
    const back = view.masquerades
      ? ''
      : `, with the sender's address: the LAN needs a route to ${view.map.cidr} through this host`;
    return passes('network', `${what}, served by this host${as}${back}`);
  }
  if (state === 'withdrawn') return passes('network', `${what}, which this host serves${as}, out of service`);
  if (state === 'missing')
    return no(reason ?? 'no connector', remedyOfMissing(reason ?? '') ?? 'add a connector for it to the network');
  if (state === 'refused') return no(`it is refused here: ${reason}`, letThrough(report, view));
  const standby = view.desired.report.filter((each) => each.prefix === prefix && each.state === 'standby');
  const others = standby.flatMap((each) => each.via ?? []);
  const neverAnswered = findNeverAnswered(view.map, view.actual, view.failures);
  const silent = others.filter((each) => neverAnswered.has(each));
  const ready = others.filter((each) => !silent.includes(each));
  const owner = findWantedOwner(address, view);
  const hop = owner && namePeer(owner.publicKey, view);
  return passes(
    'network',
    [
      `${what}, by ${via} (active)`,
      ...(hop === via ? [] : [`reached through ${hop}`]),
      ...(ready.length === 0 ? [] : [`standby: ${ready.join(', ')}`]),
      ...(silent.length === 0 ? [] : [`never answered: ${silent.join(', ')}`]),
      ...(reason === null ? [] : [reason]),
    ].join('; '),
  );
}

function letThrough(report: RouteReport, { desired }: NetworkOnHost): string {
  return remedyOfRefused(report, desired.link) ?? 'no option of this host accepts it; ask an admin';
}
