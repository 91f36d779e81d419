import * as z from 'zod';
import { Role } from './auth.ts';
import { EndpointKind, mostCandidates, NatKind } from './paths.ts';
import { Peer } from './peer.ts';
import { ChangedMapRules, MapRules } from './rules.ts';
import { identifier, nameShown, requiredText, text, tokenShown } from './text.ts';

/** The maximum number of peers that one message names for a probe. */
export const mostProbed = 32;
/** The maximum time between a message and the moment that it names. */
const longestDelayMs = 10_000;

const named = (description: string) =>
  z.object({ peers: z.array(identifier).min(1).max(mostProbed).meta({ description }) });

const oneAttempt = { peer: identifier, attempt: z.int().min(1).meta({ description: 'The number of the attempt.' }) };
const Sockets = z.array(z.string().meta({ maxLength: 64 })).max(mostCandidates);
const delay = z.int().min(0).max(longestDelayMs);

/** A message for one host, in the reply to its request for the map. */
export const PeerMessage = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('probe'), data: named('The peers to probe once.') }),
    z.object({ kind: z.literal('observe'), data: named('The peers whose endpoints to state.') }),
    z.object({ kind: z.literal('candidates'), data: named('The peers that try for a direct path.') }),
    z.object({
      kind: z.literal('try'),
      data: z.object({
        ...oneAttempt,
        endpoints: Sockets.meta({
          description:
            "The peer's, in the order in which to try them. Empty if the NATs of both leave no path, or the peer takes none: there is no attempt then.",
        }),
        observed: Sockets.optional().meta({ description: "The host's own, as connectors observe them." }),
        nats: z.object({ own: NatKind, peer: NatKind }).optional(),
        kinds: z.array(EndpointKind).optional().meta({
          description:
            'The kinds of endpoints that one side or both have. Both sides leave time for these, in the order of EndpointKind; without the field for all.',
        }),
        declined: z.boolean().optional().meta({ description: 'True if the peer takes no direct paths.' }),
        start_in_ms: delay.meta({ description: 'Both sides start this many milliseconds from now.' }),
        first: z.boolean().meta({
          description:
            'True for one of both. After a round trip without a handshake it alone removes the peer and adds it again.',
        }),
      }),
    }),
    z.object({
      kind: z.literal('switch'),
      data: z.object({
        ...oneAttempt,
        switch_in_ms: delay.meta({ description: 'Both sides switch this many milliseconds from now.' }),
      }),
    }),
    z.object({ kind: z.literal('return'), data: z.object({ peer: identifier }) }),
  ])
  .meta({
    id: 'PeerMessage',
    description: [
      'probe: the control plane lost the connections of these peers. The host reports in `probes` whether they answer it.',
      'The others are about direct paths, and the host replies to the operation signalPaths.',
      'observe: a connector states the endpoints of these peers in `observed`.',
      'candidates: these peers try for a direct path to the host, which states its endpoints in `candidates`.',
      'try: both peers try these endpoints of each other at the same moment.',
      'switch: both have proven the path, and use it from the same moment on.',
      'return: the peer uses the relay again, and so does the host.',
    ].join('\n'),
  });
export type PeerMessage = z.infer<typeof PeerMessage>;
export type PeerMessageKind = PeerMessage['kind'];
export const peerMessageKinds: readonly PeerMessageKind[] = PeerMessage.options.map(({ shape }) => shape.kind.value);

/** The maximum number of messages in a reply. */
export const mostMessages = 8;

const Routes = z.array(text(32)).max(50, { error: 'must be at most 50 routes' });

const spreadUse =
  'True to spread hosts over the connectors of a route that are healthy, have the same priority and masquerade: each host uses the one that it gets by rendezvous hashing of its id.';

/** DNS servers behind a route, and the domains whose names they resolve. */
export const RouteDns = z
  .object({
    route: text(32).meta({ description: 'A route of the network.', example: '192.168.50.0/24' }),
    dns_servers: z
      .array(text(39))
      .min(1, { error: 'must name a DNS server' })
      .max(3, { error: 'must be at most 3 DNS servers' })
      .meta({ description: 'IPv4 addresses in the route, in the order of preference.' }),
    // core/names/domain.ts parses each one.
    domains: z
      .array(text(253))
      .min(1, { error: 'must name a domain' })
      .max(16, { error: 'must be at most 16 domains' })
      .meta({
        description:
          'DNS domains, with all names below them: two labels or more, in lower case, without a trailing dot. A request may have names in Unicode; the reply has their A-labels.',
        example: ['corp.example'],
      }),
  })
  .meta({ id: 'RouteDns' });
export type RouteDns = z.infer<typeof RouteDns>;

const routeDnsUse = 'The domains behind routes. Each route has one entry, and each domain is in one.';
const RouteDnsList = z.array(RouteDns).max(16, { error: 'must be at most 16 entries' });

/** Who may enrol own devices after a login, without an enrolment key of the network. */
export const SelfEnroll = z
  .object({
    roles: z
      .array(Role)
      .min(1, { error: 'must name a role; null as self_enroll is for no user' })
      .max(Role.options.length)
      .meta({ description: 'The roles of these users.' }),
    limit: z.int().min(1).max(100).meta({ description: 'How many own devices each user may have in the network.' }),
    reauth_hours: z.int().min(1).max(8760).nullable().meta({
      description: 'For how many hours each login of a user keeps its own devices in the network; null for no expiry.',
    }),
  })
  .meta({ id: 'SelfEnroll' });
export type SelfEnroll = z.infer<typeof SelfEnroll>;

const selfEnrollUse = 'Who may enrol own devices after a login.';

export const CreateNetwork = z
  .object({
    name: requiredText(120),
    private_cidr: text(32),
    description: text(1000).optional(),
    routes: Routes.optional(),
    vpn_type: z.literal('wireguard').optional(),
    spread: z.boolean().optional().meta({ description: spreadUse }),
    route_dns: RouteDnsList.optional().meta({ description: routeDnsUse }),
  })
  .meta({ id: 'CreateNetwork' });
export type CreateNetwork = z.infer<typeof CreateNetwork>;

/** Whether an administrator approves new peers. */
export const Approval = z.enum(['required', 'off']);
export type Approval = z.infer<typeof Approval>;
const approvalUse =
  'required: a new peer waits until an owner or admin approves it. Peers of the network stay in it, and off approves no peer that waits.';

const maxAge = z.int().min(300).max(31_536_000);
const maxAgeUse =
  'Seconds for which a connector may use a map that the control plane does not confirm again; past it, the connector relays and serves nothing.';

/** Absent fields stay unchanged. */
export const ChangeNetwork = z
  .object({
    name: requiredText(120).optional(),
    description: text(1000).optional(),
    routes: Routes.optional().meta({ description: 'All routes from now on.' }),
    add_routes: Routes.optional().meta({
      description: 'Routes to add to those that there are; not together with routes. An existing one stays.',
    }),
    remove_routes: Routes.optional().meta({
      description: 'Routes to remove, not together with routes. One that is not there is a 422.',
    }),
    expected_routes: Routes.optional().meta({
      description:
        'The routes that the caller saw, in any order: a change is a 409 if the network has other routes now.',
    }),
    map_max_age_seconds: maxAge
      .nullable()
      .optional()
      .meta({ description: `${maxAgeUse} Null for no bound.` }),
    spread: z.boolean().optional().meta({ description: spreadUse }),
    route_dns: RouteDnsList.optional().meta({
      description: `${routeDnsUse} All entries from now on; empty for none. Without the field, a route that is removed takes its entry along.`,
    }),
    self_enroll: SelfEnroll.nullable()
      .optional()
      .meta({
        description: `${selfEnrollUse} Null for no user. Only owners and admins set it. Roles and limit are for new devices; reauth_hours is for all own devices.`,
      }),
    approval: Approval.optional().meta({ description: `${approvalUse} Only owners and admins set it.` }),
  })
  .meta({ id: 'ChangeNetwork' });
export type ChangeNetwork = z.infer<typeof ChangeNetwork>;

export const NetworkSummary = z
  .object({
    id: identifier,
    name: nameShown,
    description: z.string().meta({ maxLength: 1000 }),
    private_cidr: z.cidrv4(),
    routes: z.array(z.cidrv4()),
    vpn_type: z.literal('wireguard'),
    revision: z.int().min(0).meta({ description: 'Grows with every change of the network or of its peers.' }),
    map_max_age_seconds: z
      .int()
      .min(1)
      .optional()
      .meta({ description: `${maxAgeUse} Absent for no bound.` }),
    spread: z
      .boolean()
      .optional()
      .meta({ description: `${spreadUse} Absent means false.` }),
    route_dns: RouteDnsList.optional().meta({ description: `${routeDnsUse} Absent without any.` }),
    self_enroll: SelfEnroll.optional().meta({ description: `${selfEnrollUse} Absent for no user.` }),
    approval: Approval.optional().meta({ description: `${approvalUse} Absent means off.` }),
  })
  .meta({ id: 'NetworkSummary' });
export type NetworkSummary = z.infer<typeof NetworkSummary>;

/** A network at one revision, without its peers. */
export const NetworkHead = NetworkSummary.extend({
  etag: z.string().meta({
    maxLength: 128,
    description:
      'The strong ETag of this revision, for If-None-Match. A client prefers it to the ETag header, which a proxy that compresses changes or weakens.',
    example: '"12-q83vEjRWeJq8"',
  }),
  nonce: z.string().optional().meta({
    maxLength: 128,
    description:
      'A random value that stays with the network, also through a restore from a backup. The 410 of a deleted network has it, so that a host takes no other 410 for that of its network.',
    example: 'q83vEjRWeJq8',
  }),
  relay: identifier.optional().meta({
    description:
      'The connector through which hosts without an endpoint reach each other. Hosts use it while it answers them. Absent without such a connector. It changes only when this one is dead, drained, out of the map or without an endpoint.',
  }),
  rules: MapRules.optional(),
});
export type NetworkHead = z.infer<typeof NetworkHead>;

export const Network = NetworkHead.extend({ peers: z.array(Peer) }).meta({ id: 'Network' });
export type Network = z.infer<typeof Network>;

/** A whole network, in reply to a caller that may have an earlier revision. */
export const NetworkReading = Network.extend({
  removed: z.array(z.int()).optional().meta({
    description:
      'The ids of peers that are in the map no longer, since the revision that If-None-Match names: removed, suspended or expired. Absent where there are none, and where the changes since are not recorded any more.',
  }),
}).meta({ id: 'NetworkReading' });
export type NetworkReading = z.infer<typeof NetworkReading>;

/** The changes of a network since an earlier revision: its own fields, and changed peers. */
export const NetworkDelta = NetworkHead.extend({
  rules: ChangedMapRules.optional(),
  base: z.string().meta({
    maxLength: 128,
    description:
      'The ETag of the revision that the changes apply to. A whole network never has this field, so a client recognises changes whatever status a proxy gives the reply.',
    example: '"11-mS3cXkUvT0aQ"',
  }),
  peers: z.array(Peer).meta({ description: 'Peers that are new or changed, each complete.' }),
  removed: z.array(z.int()).meta({
    description: 'The ids of peers that are in the map no longer: removed, suspended or expired.',
  }),
  messages: z.array(PeerMessage).max(mostMessages).optional().meta({
    description: 'Messages for the caller alone, of the kinds in Peer-Messages; the map is unchanged. Absent for none.',
  }),
  receipt: z.string().optional().meta({
    maxLength: 128,
    description:
      'With messages: the value of Peer-Messages-Receipt by which the next request states that the host has them.',
  }),
}).meta({ id: 'NetworkDelta' });
export type NetworkDelta = z.infer<typeof NetworkDelta>;

/** The access token is this peer's. It is returned again only for the same idempotency key. */
export const Enrollment = z
  .object({
    peer: Peer,
    network: Network,
    access_token: tokenShown,
    network_etag: z.string().meta({ maxLength: 128, description: 'The ETag of the network in this reply.' }),
  })
  .meta({ id: 'Enrollment' });
export type Enrollment = z.infer<typeof Enrollment>;
