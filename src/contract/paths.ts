import * as z from 'zod';
import { identifier, instant, text } from './text.ts';

/** The maximum number of peers in `wanted`. */
export const mostWanted = 32;
/** The maximum number of a peer's endpoints, of one source and in one attempt. */
export const mostCandidates = 8;
/** The maximum number of endpoints of peers that a connector states at once. */
const mostObserved = 64;

/** `IPv4:PORT` or `[IPv6]:PORT`, 47 characters at most. Parsed by core/net/endpoint.ts. */
const SocketEndpoint = text(64).meta({ format: 'endpoint', description: 'IPv4:PORT or [IPv6]:PORT.' });

const attempt = z.int().min(1).meta({ description: 'The number of the attempt, from the message `try`.' });
const Attempted = z.object({ peer: identifier, attempt });

/** What became of one candidate. */
export const CandidateOutcome = z.enum(['no-answer', 'handshake', 'refused']).meta({
  description:
    'no-answer: there was no handshake. handshake: there was one, and no answer to a probe. refused: the host does not try this endpoint.',
});
export type CandidateOutcome = z.infer<typeof CandidateOutcome>;

/** Which kind of NAT a host seems to be behind. */
export const NatKind = z.enum(['steady', 'symmetric', 'unknown']).meta({
  description:
    'steady: connectors see one port. symmetric: each connector sees another port. unknown: fewer than two connectors see the host.',
});
export type NatKind = z.infer<typeof NatKind>;

export const EndpointKind = z.enum(['lan', 'ipv6', 'observed']).meta({
  id: 'EndpointKind',
  description: 'lan: a private IPv4 address. ipv6: an IPv6 address. observed: a public IPv4 address.',
});
export type EndpointKind = z.infer<typeof EndpointKind>;

/** Why a host returned to the relay. */
export const PathEnd = z.enum(['idle', 'lost', 'moved']).meta({
  description:
    'idle: the pair exchanged no packets. lost: the peer did not answer. moved: the own addresses changed, or the host itself ended the path.',
});
export type PathEnd = z.infer<typeof PathEnd>;

/** What became of the latest attempt of a pair. */
export const PathAttempt = z
  .object({
    at: instant.meta({ description: 'When it ended.' }),
    outcome: z.enum(['failed', 'no-endpoints', 'symmetric', 'ended']).meta({
      description: [
        'failed: no endpoint led to a path. no-endpoints: a host stated no endpoints, or none is one to try. symmetric: the NATs of the',
        'pair allow no path. ended: a host returned to the relay.',
      ].join('\n'),
    }),
    why: PathEnd.optional(),
    symmetric: z
      .array(identifier)
      .optional()
      .meta({ description: 'The peers behind a NAT that uses another port for each destination.' }),
    tried: z
      .array(z.object({ by: identifier, outcome: CandidateOutcome, endpoint: SocketEndpoint.optional() }))
      .optional()
      .meta({ description: 'What became of each endpoint. Only owners and admins get the endpoint itself.' }),
  })
  .meta({ id: 'PathAttempt' });
export type PathAttempt = z.infer<typeof PathAttempt>;

const ObservedEndpoint = z.object({
  peer: identifier,
  endpoint: SocketEndpoint,
  stood: z.boolean().meta({ description: 'It was the same at the two latest handshakes.' }),
});
export type ObservedEndpoint = z.infer<typeof ObservedEndpoint>;

const FailedAttempt = Attempted.extend({
  tried: z.array(z.object({ endpoint: SocketEndpoint, outcome: CandidateOutcome })).max(mostCandidates),
});
export type FailedAttempt = z.infer<typeof FailedAttempt>;

/**
 * What a host states about direct paths to peers that it reaches through a relay. An absent field
 * states nothing. Entries for the sender itself and for peers that are not in the map are ignored.
 */
export const PathSignals = z
  .object({
    wanted: z.array(identifier).max(mostWanted).optional().meta({
      description:
        'Peers with which the host exchanges packets through a relay. The service decides whether to start an attempt.',
    }),
    candidates: z
      .array(SocketEndpoint)
      .max(mostCandidates)
      .optional()
      .meta({
        description:
          'Own endpoints of the host on its links. They replace its earlier ones, and count for attempts that begin within 20 seconds.',
        example: ['192.168.1.7:51820', '[2001:db8::1]:51820'],
      }),
    observed: z.array(ObservedEndpoint).max(mostObserved).optional().meta({
      description: "By a connector, in reply to `observe`: the endpoints of peers in WireGuard's table.",
    }),
    proven: z.array(Attempted).max(mostWanted).optional().meta({
      description: 'The peer answered a probe over the path, or where no probe is possible, its handshake is fresh.',
    }),
    failed: z.array(FailedAttempt).max(mostWanted).optional().meta({
      description: 'The attempt ended without a path.',
    }),
    declined: z.array(identifier).max(mostWanted).optional().meta({
      description: 'In reply to `candidates` or `try`: the host takes no direct paths.',
    }),
    ended: z
      .array(z.object({ peer: identifier, why: PathEnd }))
      .max(mostWanted)
      .optional()
      .meta({ description: 'The host reaches these peers through a relay again.' }),
  })
  .meta({ id: 'PathSignals' });
export type PathSignals = z.infer<typeof PathSignals>;
