import { InvalidValue } from '../errors/index.ts';
import { formatEndpoint, parseEndpoint, parseHost } from '../net/endpoint.ts';

/** A host behind a connector that answers while its LAN works, at a TCP port or to ICMP echoes. */
export interface ProbeTarget {
  /** A DNS name or an address. */
  readonly host: string;
  readonly port: number | null;
}

/** The most processes and connections that a round may start at once. */
export const mostProbes = 16;

/** Parses `HOST:PORT` or `HOST`; an IPv6 address with a port is in brackets. */
export function parseProbeTarget(text: string, field = 'probe'): ProbeTarget {
  try {
    return { host: parseHost(text, field), port: null };
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    return parseEndpoint(text, field);
  }
}

/** Formats a target for {@link parseProbeTarget}. */
export function formatProbeTarget({ host, port }: ProbeTarget): string {
  return port === null ? host : formatEndpoint({ host, port });
}
