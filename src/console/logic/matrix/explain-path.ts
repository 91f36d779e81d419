import type { PeerHealth } from '../../../contract/health.ts';
import type { Network } from '../../../contract/network.ts';
import type { Peer } from '../../../contract/peer.ts';
import { listNames } from '../../../core/util/list-names.ts';
import { describeDevice, isDevice } from '../peers/device.ts';
import { formatExact, formatSeconds, toSentence } from '../text/format.ts';
import { cellShapes, type MatrixCell, nameCell } from './cells.ts';
import { describeAttempt } from './describe-attempt.ts';
import { type CellState, type Reach, stateOf } from './reach.ts';

export interface Remedy {
  readonly at: string;
  readonly command: string;
  readonly purpose: string;
}

export interface PathExplanation {
  readonly state: CellState;
  readonly summary: string;
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly remedies: readonly Remedy[];
}

export function explainPath(network: Pick<Network, 'peers'>, reach: Reach, from: Peer, to: Peer): PathExplanation {
  const state = stateOf(reach, from.id, to.id);
  const path = reach.pathOf(from.id, to.id);
  const last = reach.lastPathOf(from.id, to.id);
  const [own, other] = [reach.health.get(from.id), reach.health.get(to.id)];
  const isMismatch = own?.pin_mismatches.includes(to.id) ?? false;
  const relay = path?.via === undefined ? null : (reach.byId.get(path.via)?.name ?? 'a peer that is gone');
  const hasNoEndpoint = from.endpoint === null && to.endpoint === null;
  const back = stateOf(reach, to.id, from.id);
  const optional: (readonly [string, string | null])[] = [
    ['Relay', relay],
    ['Direct path', describeDirectPath(reach, from, to)],
    [
      'Latest handshake',
      path?.handshake_age === undefined ? null : `${formatSeconds(path.handshake_age)} before the report`,
    ],
    ['Round trip', path?.rtt_ms === undefined ? null : `${path.rtt_ms} ms`],
    ['Key or address', isMismatch ? `${from.name} has another one pinned, and refuses this one` : null],
    [
      'Endpoint',
      hasNoEndpoint && state !== 'relayed' && path?.direct_since === undefined
        ? 'neither peer has one that the other could dial'
        : null,
    ],
    [`${to.name} to ${from.name}`, back === 'unknown' ? null : back],
    [`Verdict on ${to.name}`, other ? `${other.state}: ${other.why}` : null],
    ['Witnesses', listWitnesses(network, reach, to)],
    [`Problem of ${from.name}`, own?.problem ?? null],
    [`Problem of ${to.name}`, other?.problem ?? null],
    [`Pending changes at ${from.name}`, own?.drift ? String(own.drift) : null],
  ];
  return {
    state,
    summary: last ? describeLast(from.name, own, last.path) : summarize(state, from.name, to.name, relay),
    facts: optional.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const])),
    remedies: listRemedies(reach, from, to, state),
  };
}

/** States since when two peers without an endpoint have a direct path, or why they have none. */
function describeDirectPath(reach: Reach, from: Peer, to: Peer): string | null {
  const [path, back] = [reach.pathOf(from.id, to.id), reach.pathOf(to.id, from.id)];
  if (path?.direct_since !== undefined) return `through NAT, since ${formatExact(path.direct_since)}`;
  const attempt = path?.attempt ?? back?.attempt;
  return attempt ? describeAttempt(attempt, (id) => reach.byId.get(id)?.name ?? 'a peer that is gone') : null;
}

/** The cell of a pair, with the relay or the direct path for the pointer. */
export function describePathCell(reach: Reach, from: Peer, to: Peer): MatrixCell {
  const state = stateOf(reach, from.id, to.id);
  const label = nameCell(from.name, to.name, state);
  const { via, direct_since } = reach.pathOf(from.id, to.id) ?? {};
  const kind = via === undefined ? null : `via ${reach.byId.get(via)?.name ?? 'a peer that is gone'}`;
  const since = direct_since === undefined ? null : `through NAT, since ${formatExact(direct_since)}`;
  const more = kind ?? since;
  return { state, shape: cellShapes[state], label, ...(more !== null && { title: `${label} ${more}` }) };
}

/** The last report of an offline host is no longer current. */
function describeLast(from: string, own: PeerHealth | undefined, path: CellState): string {
  const when = own?.reported_at == null ? '' : `, of ${formatExact(own.reported_at)},`;
  return `${from} is offline; its last report${when} was: ${path}.`;
}

function summarize(state: CellState, from: string, to: string, relay: string | null): string {
  switch (state) {
    case 'direct':
      return `${to} answers ${from}.`;
    case 'relayed':
      return `${from} reaches ${to} through ${relay ?? 'a connector'}.`;
    case 'stale':
      return `The session is old, and ${from} sent nothing since. The next packet renews it.`;
    case 'down':
      return `${to} does not answer ${from}.`;
    case 'never':
      return `${from} sends to ${to}, but there was no handshake yet.`;
    case 'unknown':
      return `${from} reports no path to ${to}: it sent nothing to it, or does not report.`;
  }
}

function listWitnesses({ peers }: Pick<Network, 'peers'>, reach: Reach, to: Peer): string | null {
  const names = (...states: readonly CellState[]) =>
    peers.filter(({ id }) => id !== to.id && states.includes(stateOf(reach, id, to.id))).map(({ name }) => name);
  const [answered, unanswered] = [names('direct'), names('down', 'never')];
  const parts = [
    answered.length > 0 ? `it answers ${listNames(answered)}` : null,
    unanswered.length > 0 ? `it does not answer ${listNames(unanswered)}` : null,
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join('; ');
}

/** Commands refer to peers by address, because a name may contain any character. */
function listRemedies(reach: Reach, from: Peer, to: Peer, state: CellState): readonly Remedy[] {
  const [own, other] = [reach.health.get(from.id), reach.health.get(to.id)];
  const remedies: Remedy[] = [];
  const add = (at: Peer, command: string, purpose: string) => remedies.push({ at: at.name, command, purpose });
  if (own?.pin_mismatches.includes(to.id)) {
    add(from, `sudo cpn accept ${to.address}`, 'Accept the changed key or address, if the change is wanted.');
  }
  if (own?.problem != null) add(from, 'sudo cpn doctor', 'Find what to fix.');
  if (state === 'direct' || state === 'relayed') return remedies;
  if (other?.problem != null) add(to, 'sudo cpn doctor', 'Find what to fix.');
  const isFromDevice = isDevice(from, own);
  const isSilent = own === undefined || own.state === 'offline' || own.reported_at === null;
  if (isSilent && !isFromDevice) add(from, ...startDaemon);
  if (other?.state === 'offline' && !isDevice(to, other)) add(to, ...startDaemon);
  if (isFromDevice) return remedies;
  const purpose = state === 'unknown' ? 'Show the path that a packet would take.' : 'Show where a packet stops.';
  add(from, `sudo cpn explain ${to.address}`, purpose);
  return remedies;
}

const startDaemon = ['sudo systemctl enable --now cpn', 'Start the daemon, which reports.'] as const;

/** Explains the cell in which a peer's row and column meet. */
export function explainPeer(
  network: Pick<Network, 'private_cidr' | 'routes' | 'peers'>,
  reach: Reach,
  peer: Peer,
): Omit<PathExplanation, 'state'> {
  const health = reach.health.get(peer.id);
  if (isDevice(peer, health)) return describeDevice(network, reach, peer);
  const witnesses = listWitnesses(network, reach, peer);
  const mismatches = health?.pin_mismatches.flatMap((id) => reach.byId.get(id) ?? []) ?? [];
  const accepts = mismatches.map(({ name, address }) => ({
    ...{ at: peer.name, command: `sudo cpn accept ${address}` },
    purpose: `Accept the changed key or address of ${name}, if the change is wanted.`,
  }));
  const dialling = network.peers.filter(({ profile }) => profile?.connector === peer.id);
  const isSilent = health === undefined || health.state === 'offline' || health.reported_at === null;
  return {
    summary: health ? toSentence(`${health.state}: ${health.why}`) : 'There is no verdict on it yet.',
    facts: [
      ...(witnesses === null ? [] : [['Witnesses', witnesses] as const]),
      ...(dialling.length === 0 ? [] : [['Only connector of', listNames(dialling.map(({ name }) => name))] as const]),
      ...(health?.problem == null ? [] : [['Problem', health.problem] as const]),
      ...(mismatches.length === 0
        ? []
        : [['Key or address', `refused of ${listNames(mismatches.map(({ name }) => name))}`] as const]),
      ...(health?.drift ? [['Pending changes', String(health.drift)] as const] : []),
    ],
    remedies: [
      ...accepts,
      ...(health?.problem == null ? [] : [{ at: peer.name, command: 'sudo cpn doctor', purpose: 'Find what to fix.' }]),
      ...(isSilent ? [{ at: peer.name, command: startDaemon[0], purpose: startDaemon[1] }] : []),
    ],
  };
}
