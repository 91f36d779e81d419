import * as z from 'zod';
import { mostProbed } from './network.ts';
import { PathAttempt } from './paths.ts';
import { identifier, instant, nameShown, text } from './text.ts';

/** How a host reaches a peer, by its own measurements. */
export const PathState = z.enum(['direct', 'relayed', 'stale', 'down', 'never']).meta({
  id: 'PathState',
  description:
    'direct: the peer answers. relayed: its packets go through the connector `via`. stale: the session is old and nothing was sent. down: the peer does not answer. never: there was no handshake.',
});
export type PathState = z.infer<typeof PathState>;

const rate = z.int().min(0).meta({ description: 'Bytes a second.' });

export const PeerPath = z
  .object({
    peer: identifier,
    path: PathState,
    via: identifier.optional().meta({ description: 'The connector that relays.' }),
    handshake_age: z.int().min(0).optional().meta({ description: 'Seconds since the latest handshake.' }),
    rtt_ms: z.number().min(0).max(60_000).optional(),
    rx_rate: rate.optional(),
    tx_rate: rate.optional(),
  })
  .meta({ id: 'PeerPath' });
export type PeerPath = z.infer<typeof PeerPath>;

/** A reported path, with what the control plane has of the pair. */
export const PathHealth = PeerPath.extend({
  direct_since: instant.optional().meta({
    description: 'Since when both use a direct path, although neither has an endpoint. Only where `path` is direct.',
  }),
  attempt: PathAttempt.optional(),
}).meta({ id: 'PathHealth' });
export type PathHealth = z.infer<typeof PathHealth>;

/** How a host reaches one route of the network. */
export const RoutePath = z
  .object({
    route: z.cidrv4(),
    connector: identifier.nullable().meta({ description: 'The connector in use; null where none answers.' }),
    lan: z
      .enum(['up', 'down'])
      .optional()
      .meta({ description: 'Of a connector that serves the route: whether its LAN answers.' }),
  })
  .meta({ id: 'RoutePath' });
export type RoutePath = z.infer<typeof RoutePath>;

/** A route that a connector serves as a LAN prefix with other addresses of the same length. */
export const MappedRoute = z
  .object({
    route: z.cidrv4(),
    local: z.cidrv4().meta({ description: 'The prefix behind the connector. No packet in the network has it.' }),
  })
  .meta({ id: 'MappedRoute' });
export type MappedRoute = z.infer<typeof MappedRoute>;

/** The maximum number of paths. A host with more peers reports the most important ones. */
export const mostPaths = 500;
export const mostRoutes = 51;

/** The result of a probe that the control plane requested. */
export const ProbeResult = z.object({ peer: identifier, answered: z.boolean() }).meta({ id: 'ProbeResult' });
export type ProbeResult = z.infer<typeof ProbeResult>;

const mostRefused = 16;

/** A connection that the rules of a closed network refused. */
export const RefusedConnection = z
  .object({
    from: z.union([z.ipv4(), z.ipv6()]),
    to: z.union([z.ipv4(), z.ipv6()]),
    protocol: z.enum(['tcp', 'udp']),
    port: z.int().min(0).max(65_535),
  })
  .meta({ id: 'RefusedConnection' });
export type RefusedConnection = z.infer<typeof RefusedConnection>;

/** The observations of a host. Absent fields stay as last reported. */
export const Report = z
  .object({
    complete: z.boolean().optional().meta({
      description:
        'The report replaces all earlier ones. Without it, its paths and routes replace those of the same peer or route.',
    }),
    paths: z.array(PeerPath).max(mostPaths).optional(),
    routes: z.array(RoutePath).max(mostRoutes).optional(),
    map: z.array(MappedRoute).max(mostRoutes).optional().meta({
      description: 'Of a connector: the routes that it maps to LAN prefixes with other addresses.',
    }),
    drift: z.int().min(0).optional().meta({ description: 'Changes that are pending at the host.' }),
    pin_mismatches: z.array(identifier).max(mostPaths).optional().meta({
      description: 'Peers whose key or address differs from the pin of the host.',
    }),
    probes: z.array(ProbeResult).max(mostProbed).optional().meta({
      description:
        'The reply to a message of kind `probe`. A peer that the host never reached directly, and that does not answer, is left out.',
    }),
    follows_relay: z.boolean().optional().meta({
      description:
        "The host uses the network's relay, and so accepts packets from it with their sender's address. Unlike the other fields, absent is false.",
    }),
    enforces_rules: z.boolean().optional().meta({
      description: 'The host enforces the rules of a closed network. Unlike the other fields, absent is false.',
    }),
    refused: z.array(RefusedConnection).max(mostRefused).optional().meta({
      description: 'Connections that the rules of the network refused at the host since its last report.',
    }),
    problem: text(300)
      .nullable()
      .optional()
      .meta({ description: 'Why the host fails to reconcile; null where it succeeds.' }),
  })
  .meta({ id: 'Report' });
export type Report = z.infer<typeof Report>;

const PeerState = z.enum(['online', 'offline', 'unknown']).meta({
  description:
    'offline: silent to the control plane, and every host that could reach it gets no answer. unknown: no host can judge.',
});
export type PeerState = z.infer<typeof PeerState>;

const verdict = {
  state: PeerState,
  reachable_by: z.int().min(0).meta({ description: 'How many of the witnesses the peer answers.' }),
  witnesses: z.int().min(0).meta({ description: 'How many hosts can judge whether the peer answers.' }),
  why: z.string().meta({ description: 'The reason for the state.' }),
};

/** The reply to a report: how the network sees its sender. */
export const ReportReply = z.object(verdict).meta({ id: 'ReportReply' });
export type ReportReply = z.infer<typeof ReportReply>;

export const PeerHealth = z
  .object({
    id: identifier,
    name: nameShown,
    ...verdict,
    last_seen: instant.nullable().meta({ description: 'The last request of the host, to a minute.' }),
    version: z.string().meta({ maxLength: 64 }).nullable(),
    platform: z.string().meta({ maxLength: 64 }).nullable(),
    source_address: z
      .string()
      .meta({ maxLength: 64 })
      .nullable()
      .meta({ description: 'Where its requests come from.' }),
    reported_at: instant.nullable(),
    paths: z.array(PathHealth),
    routes: z.array(RoutePath),
    map: z.array(MappedRoute).optional().meta({ description: 'As the connector reports it; absent for none.' }),
    drift: z.int().min(0).nullable(),
    pin_mismatches: z.array(identifier),
    problem: z.string().nullable(),
    never_answered: z.boolean().optional().meta({
      description: 'Of a connector: it has made no request, and no host reports that it answers.',
    }),
  })
  .meta({ id: 'PeerHealth' });
export type PeerHealth = z.infer<typeof PeerHealth>;

const RouteHealth = z.object({
  route: z.cidrv4(),
  state: z.enum(['up', 'dead', 'unknown']),
  connector: identifier.nullable().meta({ description: 'The connector that most hosts use.' }),
  standby: z.array(identifier).meta({ description: 'Connectors that would take over, the first one first.' }),
  never_answered: z
    .array(identifier)
    .optional()
    .meta({ description: 'Connectors that are to serve the route and have never answered; they are no standby.' }),
  shares: z
    .array(z.object({ connector: identifier, hosts: z.int().min(0) }))
    .optional()
    .meta({ description: 'In a network that spreads its hosts: how many of them use each connector.' }),
  why: z.string(),
});
export type RouteHealth = z.infer<typeof RouteHealth>;

/** The health of a network, as its hosts observe it. */
export const Health = z
  .object({
    peers: z.array(PeerHealth),
    routes: z.array(RouteHealth),
    relay: identifier.optional().meta({ description: 'The relay of the network. Absent without one.' }),
  })
  .meta({ id: 'Health' });
export type Health = z.infer<typeof Health>;

const count = z.int().min(0);

/** The health of a network in numbers, without its paths. */
export const HealthSummary = z
  .object({
    network: identifier,
    peers: z.object({ online: count, offline: count, unknown: count }),
    routes: z.object({ up: count, dead: count, unknown: count }),
    offline_servers: count.meta({
      description: 'Connectors and origins among the offline peers. Laptops and phones come and go.',
    }),
    silent_connectors: count.meta({
      description: 'Connectors that enrolled, and were never online since. They are among the unknown peers.',
    }),
  })
  .meta({ id: 'HealthSummary' });
export type HealthSummary = z.infer<typeof HealthSummary>;
