import * as v from 'valibot';
import { keyPairOf } from '../../core/crypto/keys.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import type { Peer } from '../../core/map/model.ts';
import { formatProbeTarget } from '../../core/map/options.ts';
import { formatPrefixMap } from '../../core/map/prefix-maps.ts';
import type { PeerLabels } from '../../core/names/hosts-label.ts';
import { formatEndpoint } from '../../core/net/endpoint.ts';
import type { Pin } from '../../core/pins/match-pins.ts';
import { formatServiceAddress, int, parseAs } from '../files/file-schema.ts';
import type { Rotation, State } from './state.ts';
import { mapFields, peerNames, stateSchema, stateVersion } from './state-schema.ts';

/**
 * Formats a state as the text of its file, with secrets in clear text. The same state always gives
 * the same text. Peers, pins and labels may number thousands, and have one line each.
 */
export function formatState({ keyPair, identity, rotation, networkSecret, ...state }: State): string {
  const { membership, pins, labels } = state;
  const text = {
    version: stateVersion,
    ...state,
    privateKey: keyPair.privateKey.reveal(),
    publicKey: keyPair.publicKey,
    identity: identity?.seed.reveal() ?? null,
    rotation: rotation && formatRotation(rotation),
    networkSecret: networkSecret?.reveal() ?? null,
    service: formatServiceAddress(state.service),
    options: {
      ...state.options,
      probes: state.options.probes.map(formatProbeTarget),
      maps: state.options.maps.map(formatPrefixMap),
    },
    enrollment: {
      ...state.enrollment,
      endpoint: state.enrollment.endpoint && formatEndpoint(state.enrollment.endpoint),
    },
    membership: membership && {
      ...membership,
      accessToken: membership.accessToken?.reveal() ?? null,
      personalToken: membership.personalToken?.reveal() ?? null,
      map: { ...membership.map, fields: mapFields, peers: [] },
    },
    pins: [],
    labels: [],
  };
  const whole = JSON.stringify(sorted(text), null, 2);
  const peers = membership?.map.peers.map(formatPeer) ?? [];
  const withPins = withRows(withRows(whole, 'peers', peers), 'pins', pins.map(formatPin));
  return `${withRows(withPins, 'labels', labels.map(formatLabels))}\n`;
}

/** Inserts rows into the empty list of this name, which is unique: texts escape their quotes. */
function withRows(text: string, name: string, rows: readonly string[]): string {
  if (rows.length === 0) return text;
  return text.replace(`"${name}": []`, () => `"${name}": [\n${rows.join(',\n')}\n]`);
}

// Rows list their fields in file order: sorting 10,000 peers takes longer than formatting them.

function formatPeer(peer: Peer): string {
  const { endpoint, given, proof } = peer;
  const text: Partial<FileRow<Peer>> = {
    ...peer,
    endpoint: endpoint && formatEndpoint(endpoint),
    given: given && sorted({ ...given, presharedKey: given.presharedKey?.reveal() ?? null }),
    proof: proof && sorted(proof),
  };
  const row: Record<string, unknown> = {};
  for (const name of peerNames) row[name] = text[name];
  return JSON.stringify(row);
}

function formatPin({ address, claimed, identity, peer, publicKey, serial }: Pin): string {
  return JSON.stringify({
    address,
    claimed: sorted(claimed),
    identity,
    peer,
    publicKey,
    serial,
  } satisfies FileRow<Pin>);
}

function formatLabels({ labels, peer }: PeerLabels): string {
  return JSON.stringify({ labels, peer } satisfies FileRow<PeerLabels>);
}

/** Requires every field: a field that is missing here would be missing in the file. */
type FileRow<T> = Readonly<Record<keyof T, unknown>>;

/**
 * Parses the output of {@link formatState}. Throws for any other text. Trusts a public key that the
 * map lists, because deriving it takes a tenth of the time of `cpn status`.
 */
export function parseState(text: string): State {
  const { version: _, privateKey, publicKey, keySince, rotation, ...state } = parseAs(stateSchema, parseJson(text));
  const isListed = state.membership?.map.peers.some((peer) => peer.publicKey === publicKey) === true;
  const keyPair = keyPairOf(privateKey, isListed ? publicKey : undefined);
  if (publicKey !== undefined && publicKey !== keyPair.publicKey)
    throw new Error('the public key is not that of the private key');
  return {
    ...state,
    keyPair,
    keySince: keySince ?? state.createdAt,
    rotation: rotation && readRotation(rotation),
  };
}

/** The version that a text claims. Null if it is no state. */
export function versionOf(text: string): number | null {
  try {
    return parseAs(v.object({ version: int }), JSON.parse(text)).version;
  } catch {
    return null;
  }
}

/** Replaces Node's message, which would quote the text with its keys. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError(text.trim() === '' ? 'it is empty' : 'it is not JSON');
  }
}

/** Returns the same value with the fields of each record sorted by name. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, each]) => [name, sorted(each)]),
  );
}

function formatRotation({ keyPair, ...rest }: Rotation) {
  return { ...rest, privateKey: keyPair.privateKey.reveal() };
}

function readRotation({ privateKey, ...rest }: Omit<Rotation, 'keyPair'> & { readonly privateKey: Secret }): Rotation {
  return { ...rest, keyPair: keyPairOf(privateKey) };
}
