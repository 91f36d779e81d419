import * as z from 'zod';
import { formatEndpoint } from '../core/endpoint.ts';
import type { HeldLabels, Peer, Pin } from '../core/model.ts';
import { perObject } from '../core/per-object.ts';
import { formatProbeTarget } from '../core/probe-target.ts';
import type { Rotation, State } from './state.ts';
import { stateSchema, stateVersion } from './state-schema.ts';

/**
 * The state as the text of its file, secrets in the open; made once of each. The same state always gives the same text. Peers, pins and
 * labels, of which there may be thousands, have a line each, and those that did not change since the last text are not formatted again.
 */
export const formatState = perObject(({ keyPair, identity, rotation, networkSecret, ...state }: State): string => {
  const { membership, pins, labels } = state;
  const text = {
    version: stateVersion,
    ...state,
    privateKey: keyPair.privateKey.reveal(),
    identity: identity?.seed.reveal() ?? null,
    rotation: rotation && formatRotation(rotation),
    networkSecret: networkSecret?.reveal() ?? null,
    options: { ...state.options, probes: state.options.probes.map(formatProbeTarget) },
    enrollment: {
      ...state.enrollment,
      endpoint: state.enrollment.endpoint && formatEndpoint(state.enrollment.endpoint),
    },
    membership: membership && {
      ...membership,
      accessToken: membership.accessToken?.reveal() ?? null,
      personalToken: membership.personalToken?.reveal() ?? null,
      map: { ...membership.map, peers: [] },
    },
    pins: [],
    labels: [],
  };
  const whole = JSON.stringify(text, sortKeys, 2);
  const peers = membership?.map.peers.map(rowOfPeer) ?? [];
  const withPins = withRows(withRows(whole, 'peers', peers), 'pins', pins.map(rowOfPin));
  return `${withRows(withPins, 'labels', labels.map(rowOfLabels))}\n`;
});

/** Puts rows into the empty list of this name, the only one: within a text its quotes would be escaped. */
function withRows(text: string, name: string, rows: readonly string[]): string {
  if (rows.length === 0) return text;
  return text.replace(`"${name}": []`, () => `"${name}": [\n${rows.join(',\n')}\n]`);
}

const rowOfPeer = perObject((peer: Peer) => JSON.stringify(formatPeer(peer), sortKeys));
const rowOfPin = perObject((pin: Pin) => JSON.stringify(pin, sortKeys));
const rowOfLabels = perObject((labels: HeldLabels) => JSON.stringify(labels, sortKeys));

/** Reads what {@link formatState} wrote; throws whatever is wrong with it. */
export function parseState(text: string): State {
  const { version: _, privateKey, keySince, rotation, ...state } = stateSchema.parse(parseJson(text));
  return {
    ...state,
    keyPair: privateKey,
    keySince: keySince ?? state.createdAt,
    rotation: rotation && readRotation(rotation),
  };
}

/** The version a text claims to be of, or null when it is no state at all. */
export function versionOf(text: string): number | null {
  try {
    return z.object({ version: z.int() }).parse(JSON.parse(text)).version;
  } catch {
    return null;
  }
}

/** Node's own message would quote a part of the text, which holds keys. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError(text.trim() === '' ? 'it is empty' : 'it is not JSON');
  }
}

function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function formatRotation({ keyPair, ...rest }: Rotation) {
  return { ...rest, privateKey: keyPair.privateKey.reveal() };
}

function readRotation({
  privateKey,
  ...rest
}: Omit<Rotation, 'keyPair'> & { privateKey: Rotation['keyPair'] }): Rotation {
  return { ...rest, keyPair: privateKey };
}

function formatPeer({ endpoint: at, given, ...rest }: Peer) {
  const tunnel = given && { ...given, presharedKey: given.presharedKey?.reveal() ?? null };
  return { ...rest, endpoint: at && formatEndpoint(at), ...(tunnel && { given: tunnel }) };
}
