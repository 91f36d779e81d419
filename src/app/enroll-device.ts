import type { AdminService, Enrolled } from '../api/service.ts';
import { type KeyPair, makeKeyPair } from '../core/crypto/keys.ts';
import { tagOf } from '../core/crypto/network-secret.ts';
import { Secret } from '../core/crypto/secret.ts';
import { BadReply, expectCpnError, printable } from '../core/errors/index.ts';
import { noForwarding } from '../core/forward/ingress.ts';
import type { Underlay } from '../core/host-state/actual.ts';
import type { Id, NetworkMap, PeerId } from '../core/map/model.ts';
import type { Options } from '../core/map/options.ts';
import { findOwnPeer } from '../core/map/own-peer.ts';
import type { Resolved } from '../core/names/resolved-names.ts';
import { familyOf } from '../core/net/cidr.ts';
import { isLiteral } from '../core/net/endpoint.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import { computeDesired } from '../core/reconcile/compute-desired.ts';
import type { Desired } from '../core/reconcile/desired.ts';
import { advertisedBy } from '../core/routing/public-prefixes.ts';
import { resolveDeadline } from './reconcile/resolve-names.ts';
import { readFeatures } from './service-features.ts';
import type { Tools } from './tools.ts';

/** A device on which `cpn` does not run, such as a phone, that is to be a peer of its own. */
export interface DeviceRequest {
  readonly admin: AdminService;
  readonly address: ServiceAddress;
  readonly network: Id;
  readonly name: string;
  readonly link: string;
  readonly options: Options;
  /** That of the network's hosts, without which none of them answers; null for none. */
  readonly networkSecret: Secret | null;
}

/** A device that is a peer now, and the tunnel that it is to have. Its keys are here and nowhere else. */
export interface Device {
  readonly id: PeerId;
  readonly name: string;
  readonly desired: Desired;
}

/**
 * Makes a key pair for a device, enrols it as an administrator may, and has `deliver` hand over what comes of it; nothing of it is kept
 * on this host. Where `deliver` fails, the peer is removed again: its keys are lost.
 */
export async function enrollDevice(
  tools: Tools,
  request: DeviceRequest,
  deliver: (device: Device) => Promise<void>,
): Promise<void> {
  const keyPair = makeKeyPair(tools.random(32));
  const enrolled = await enroll(tools, request, keyPair);
  try {
    const desired = await desireDevice(tools, request, keyPair, enrolled);
    const { id, name } = enrolled.peer;
    await deliver({ id, name, desired });
  } catch (error) {
    await removeEnrolled(tools, request, enrolled.peer.id);
    throw error;
  }
}

async function enroll(tools: Tools, request: DeviceRequest, { publicKey }: KeyPair): Promise<Enrolled> {
  const { admin, address, network, name, networkSecret } = request;
  tools.progress(`enrolling ${name} at ${address.url}`);
  const key = await admin.createKey(network, {
    ...{ name, max_uses: 1, expires_in_hours: 1 },
    peer_types: ['admin_device'],
  });
  try {
    const { states } = await tools.store.list();
    const known = states.find((each) => each.service.url === address.url && each.features !== null);
    const features = await readFeatures(tools, { service: address, features: known?.features ?? null });
    const service = await tools.connect({ service: address, features });
    return await service.enroll({
      token: new Secret(key.enrollment_token),
      name,
      type: 'admin_device',
      publicKey,
      endpoint: null,
      ...(networkSecret && { secretTag: tagOf(networkSecret) }),
      idempotencyKey: Buffer.from(tools.random(16)).toString('hex'),
    });
  } catch (error) {
    // Best effort: it ends by itself within the hour.
    if (key.id !== null) await admin.revokeKey(network, key.id).catch(expectCpnError);
    throw error;
  }
}

/** What the device should be; nothing is known of what is around it. */
async function desireDevice(tools: Tools, request: DeviceRequest, keyPair: KeyPair, { map, peer }: Enrolled) {
  const { link, options, networkSecret, address } = request;
  const self = findOwnPeer(map, { keyPair, rotation: null, membership: { peer } });
  if (self === undefined) {
    throw new BadReply(
      address.url,
      'does not list the device that it enrolled',
      'ask an admin of the control plane why',
    );
  }
  const resolved = await resolveEndpoints(tools, map);
  const ground = {
    surroundings: nowhere,
    sshClients: [],
    api: [],
    inside: { range: map.cidr, own: self.address, present: [], accepted: [], outside: [], tunnelled: [] },
    taken: [],
    later: [],
    advertised: advertisedBy(map),
    allowed: options.allowRoutes,
  };
  return computeDesired(
    {
      ...{ link, map, self, keyPair, networkSecret, options, resolved, forwarding: noForwarding },
      ...{
        unreachable: [],
        failed: [],
        label: null,
        labels: [],
        pathMtu: null,
        routeTable: null,
        strict: null,
        sessions: [],
      },
    },
    ground,
  );
}

const nowhere: Underlay = {
  ...{ addresses: [], connected: [], routed: [], gateways: [], uplinks: [] },
  ...{ links: [], resolvers: [], underlayMtu: null },
};

/** The file names addresses only, as that of every host does. */
async function resolveEndpoints(tools: Tools, { peers }: NetworkMap): Promise<Resolved> {
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

async function removeEnrolled(tools: Tools, { admin, network, name }: DeviceRequest, id: PeerId): Promise<void> {
  try {
    await admin.removePeer(network, id);
  } catch (error) {
    expectCpnError(error);
    tools.warn(
      `${printable(name)} stays in the network without anybody who has its keys; type: cpn peer remove ${network} ${id}`,
    );
  }
}
