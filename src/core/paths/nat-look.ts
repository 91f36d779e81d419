import { type SocketEndpoint, tryParseSocket } from '../net/endpoint.ts';
import type { NatKind } from './candidates.ts';

/**
 * What the NAT of a host looks like, by its endpoints before and after it:
 * - `none`: the host has the address that others see.
 * - `port-kept`, `port-changed`: the port after NAT is the host's own, or another one.
 * - `one-port`: several connectors see the same port. The host's own port is not known.
 * - `symmetric`: each destination sees another port.
 */
export const natLooks = ['none', 'port-kept', 'port-changed', 'one-port', 'symmetric', 'unknown'] as const;
export type NatLook = (typeof natLooks)[number];

/** The endpoints of a host before NAT, and as others see them. */
export interface NatView {
  readonly own: readonly SocketEndpoint[];
  readonly observed: readonly string[];
  /** By the control plane, which compares what several connectors see. */
  readonly kind: NatKind;
}

export function lookOfNat({ own, observed, kind }: NatView): NatLook {
  const sockets = observed.flatMap((text) => tryParseSocket(text) ?? []);
  const ports = new Set(sockets.map(({ port }) => port));
  if (kind === 'symmetric' || ports.size > 1) return 'symmetric';
  if (sockets.length === 0) return 'unknown';
  if (sockets.every(({ host }) => own.some((each) => each.host === host))) return 'none';
  if (own.length === 0) return kind === 'steady' ? 'one-port' : 'unknown';
  return sockets.every(({ port }) => own.some((each) => each.port === port)) ? 'port-kept' : 'port-changed';
}

/** True if the host has the same port for all destinations, by all that is known. */
export function allowsPaths(look: NatLook): boolean {
  return look !== 'symmetric' && look !== 'unknown';
}

const texts: Readonly<Record<NatLook, string>> = {
  none: 'no NAT',
  'port-kept': 'a NAT that keeps the port',
  'port-changed': 'a NAT that changes the port',
  'one-port': 'a NAT with the same port for all destinations',
  symmetric: 'a symmetric NAT, with another port for each destination',
  unknown: 'an unknown NAT',
};

export function describeNat(look: NatLook): string {
  return texts[look];
}
