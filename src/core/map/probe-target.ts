import { InvalidValue } from '../errors/index.ts';
import { formatEndpoint, parseEndpoint, parseHost } from '../net/endpoint.ts';

/** A host behind a connector that answers while its LAN is well: a TCP port of it, or without one an ICMP echo. */
export interface ProbeTarget {
  /** A DNS name or an address. */
  readonly host: string;
  readonly port: number | null;
}

/** Processes and connections that a round may begin at once. */
export const mostProbes = 16;

/** Parses `HOST:PORT` or `HOST`, an IPv6 address with a port in brackets. */
export function parseProbeTarget(text: string, field = 'probe'): ProbeTarget {
  try {
    return { host: parseHost(text, field), port: null };
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    return parseEndpoint(text, field);
  }
}

/** What {@link parseProbeTarget} reads. */
export function formatProbeTarget({ host, port }: ProbeTarget): string {
  return port === null ? host : formatEndpoint({ host, port });
}
