import type { Network } from '../../api/admin-service.ts';
import type { KeyPair, PublicKey } from '../../core/crypto/keys.ts';
import { presharedKeyOf } from '../../core/crypto/network-secret.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import {
  type ConnectorProfile,
  deviceKeepalive,
  deviceMtu,
  findProfileRoutes,
} from '../../core/export/device-profile.ts';
import { noForwarding } from '../../core/forward/ingress.ts';
import type { Underlay } from '../../core/host-state/actual.ts';
import type { NetworkMap, Peer, PeerId } from '../../core/map/model.ts';
import type { Options } from '../../core/map/options.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { addressesOf, type Resolved } from '../../core/names/resolved-names.ts';
import { type Address, familyOf, type Prefix } from '../../core/net/cidr.ts';
import { formatEndpoint, isLiteral, parseEndpoint } from '../../core/net/endpoint.ts';
import { computeDesired } from '../../core/reconcile/compute-desired.ts';
import { noNames } from '../../core/reconcile/desired.ts';
import { judgeRoutes, type RouteConstraints } from '../../core/routing/guard.ts';
import { advertisedBy } from '../../core/routing/public-prefixes.ts';
import type { TunnelConfig } from '../../core/wg-quick/parse.ts';
import { resolveDeadline } from '../reconcile/names/resolve-names.ts';
import type { Tools } from '../tools.ts';

export interface DeviceTunnel {
  readonly config: TunnelConfig;
  readonly refused: readonly { readonly prefix: Prefix; readonly reason: string }[];
  /** Set for a device that dials only one connector. */
  readonly profile: ConnectorProfile | null;
}

export interface DevicePlan {
  readonly map: NetworkMap;
  readonly resolved: Resolved;
  readonly keyPair: KeyPair;
  readonly peer: { readonly id: PeerId; readonly name: string; readonly address: Address };
  readonly link: string;
  readonly options: Options;
  readonly networkSecret: Secret | null;
  /** The only connector that the device dials; null to dial all peers with an endpoint. */
  readonly connector: PeerId | null;
}

/** @throws WrongUsage if the connector is no longer in the network */
export function desireDevice(plan: DevicePlan): DeviceTunnel {
  return plan.connector === null ? desireAll(plan) : desireConnector(plan, plan.connector);
}

/** A device always has a /32: on every system, AllowedIPs lead into the tunnel. */
const ownLength = 32;

function desireConnector(plan: DevicePlan, id: PeerId): DeviceTunnel {
  const { map, keyPair, options, networkSecret, resolved } = plan;
  const connector = map.peers.find((peer) => peer.id === id);
  if (connector?.endpoint == null)
    throw new WrongUsage(`connector ${id} is not in the network any more, or has no endpoint; try again`);
  const { refuse } = judgeRoutes(constrain(plan));
  const judged = map.routes.map((prefix) => ({ prefix, reason: refuse(prefix) }));
  const offered = options.acceptRoutes ? judged : [];
  const routes = offered.flatMap(({ prefix, reason }) => (reason === null ? prefix : []));
  const { host, port } = connector.endpoint;
  const [literal] = isLiteral(connector.endpoint) ? [connector.endpoint.host] : addressesOf(host, resolved);
  return {
    config: {
      ...{ privateKey: keyPair.privateKey, listenPort: options.listenPort, fwmark: null },
      mtu: options.mtu ?? deviceMtu,
      address: { address: plan.peer.address, length: ownLength },
      peers: [
        {
          publicKey: connector.publicKey,
          presharedKey: networkSecret && presharedKeyOf(networkSecret, map.id, keyPair.publicKey, connector.publicKey),
          endpoint: literal === undefined ? null : { host: literal, port },
          allowedIps: [map.cidr, ...routes],
          keepalive: deviceKeepalive,
        },
      ],
    },
    // The default route is left out without a message: a device keeps its own path to the internet.
    refused: offered.flatMap(({ prefix, reason }) =>
      reason === null || findProfileRoutes([prefix]).length === 0 ? [] : [{ prefix, reason }],
    ),
    profile: {
      connector: connector.id,
      public_key: connector.publicKey,
      endpoint: formatEndpoint(connector.endpoint),
      routes,
      declined: map.routes.filter((route) => !routes.includes(route)),
    },
  };
}

function desireAll(plan: DevicePlan): DeviceTunnel {
  const { map, keyPair, peer, link, options, networkSecret, resolved } = plan;
  const self = findOwnPeer(map, { keyPair, rotation: null, membership: { peer } });
  if (self === undefined)
    throw new WrongUsage('the control plane does not list the device that it enrolled; try again');
  const { config, report } = computeDesired(
    {
      ...{ link, map, self, keyPair, networkSecret, resolved, forwarding: noForwarding },
      options: { ...options, mtu: options.mtu ?? deviceMtu },
      ...{ unreachable: [], failed: [], label: '', labels: [], pathMtu: null, routeTable: null },
      ...{ strict: null, sessions: [], names: noNames },
    },
    constrain(plan),
  );
  return {
    config: { ...config, address: { ...config.address, length: ownLength } },
    refused: report.flatMap(({ prefix, state, reason }) =>
      state === 'refused' && reason !== null ? [{ prefix, reason }] : [],
    ),
    profile: null,
  };
}

/** The network around a device is unknown. */
function constrain({ map, peer, options }: DevicePlan): RouteConstraints {
  return {
    underlay: nowhere,
    ...{ sshClients: [], api: [], taken: [], newerLinks: [] },
    tunnelPrefixes: { range: map.cidr, own: peer.address, present: [], accepted: [], outside: [], tunnelled: [] },
    advertised: advertisedBy(map),
    allowed: options.allowRoutes,
  };
}

const nowhere: Underlay = {
  ...{ addresses: [], connected: [], routed: [], gateways: [], uplinks: [] },
  ...{ links: [], resolvers: [], underlayMtu: null },
};

/** Converts an administrator's view of a network to the map of a host. */
export function toMap({ id, name, private_cidr, routes, peers }: Network): NetworkMap {
  return {
    ...{ id, name, cidr: private_cidr as Prefix, routes: routes as Prefix[], revision: null },
    peers: peers.map(
      (peer): Peer => ({
        ...{ id: peer.id, name: peer.name, type: peer.peer_type },
        ...{ publicKey: peer.public_key as PublicKey, address: peer.address as Address },
        endpoint: peer.endpoint === null ? null : parseEndpoint(peer.endpoint),
        routes: (peer.routes as Prefix[] | undefined) ?? null,
        withdrawn: (peer.withdrawn as Prefix[] | undefined) ?? [],
        ...(peer.serving_since !== undefined && { servingSince: Date.parse(peer.serving_since) }),
        ...(peer.priority !== undefined && { priority: peer.priority }),
        ...(peer.via && { via: { connector: peer.profile?.connector ?? null } }),
      }),
    ),
  };
}

/** Resolves endpoints to addresses, because the device may not resolve names like this host. */
export async function resolveEndpoints(tools: Pick<Tools, 'host' | 'warn'>, peers: readonly Peer[]): Promise<Resolved> {
  const names = new Set(peers.flatMap(({ endpoint }) => (endpoint && !isLiteral(endpoint) ? endpoint.host : [])));
  const entries = await Promise.all(
    [...names].map(async (name) => {
      const found = await tools.host.resolve(name, resolveDeadline);
      // The device cannot choose: a network without IPv6 is more common than one without IPv4.
      const addresses = found.toSorted((one, other) => familyOf(one) - familyOf(other));
      if (addresses.length === 0) tools.warn(`${name} does not resolve here; the device gets no endpoint of its peer`);
      return [name, addresses] as const;
    }),
  );
  return Object.fromEntries(entries);
}
