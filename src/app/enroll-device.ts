import type { AdminService, Enrolled } from '../api/service.ts';
import type { Surroundings } from '../core/actual.ts';
import { type Desired, desire } from '../core/desired.ts';
import { isLiteral } from '../core/endpoint.ts';
import { BadReply, CpnError, printable } from '../core/errors.ts';
import { noForwarding } from '../core/forward/ingress.ts';
import { type KeyPair, makeKeyPair } from '../core/keys.ts';
import type { Id, NetworkMap, Options, PeerId, ServiceAddress } from '../core/model.ts';
import { tagOf } from '../core/network-secret.ts';
import { findOwnPeer } from '../core/own-peer.ts';
import type { Resolved } from '../core/resolved.ts';
import { Secret } from '../core/secret.ts';
import { readFeatures } from './described.ts';
import { resolveDeadline } from './resolve.ts';
import type { KnownService, Tools } from './tools.ts';

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
 * on this host. Where the handing over fails, the peer is taken out of the network again: nobody has its keys.
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
    await takeOut(tools, request, enrolled.peer.id);
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
    const features = await readFeatures(tools, await findKnown(tools, address));
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
    if (key.id !== null) await admin.revokeKey(network, key.id).catch(foreseen);
    throw error;
  }
}

/** What any of this host's networks knows of the service. */
async function findKnown(tools: Tools, address: ServiceAddress): Promise<KnownService> {
  const { states } = await tools.store.list();
  const same = states.find(({ service, features }) => service.url === address.url && features !== null);
  return { service: address, features: same?.features ?? null };
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
    api: [],
    inside: { range: map.cidr, own: self.address, ways: [], accepted: [] },
    taken: [],
    later: [],
    allowed: options.allowRoutes,
  };
  return desire(
    {
      link,
      map,
      self,
      keyPair,
      networkSecret,
      options,
      resolved,
      failed: [],
      label: null,
      labels: [],
      pathMtu: null,
      forwarding: noForwarding,
    },
    ground,
  );
}

const nowhere: Surroundings = {
  addresses: [],
  connected: [],
  routed: [],
  gateways: [],
  uplinks: [],
  links: [],
  resolvers: [],
  sshClients: [],
  underlayMtu: null,
};

/** The file names addresses only, as that of every host does. */
async function resolveEndpoints(tools: Tools, { peers }: NetworkMap): Promise<Resolved> {
  const names = new Set(peers.flatMap(({ endpoint }) => (endpoint && !isLiteral(endpoint) ? endpoint.host : [])));
  const entries = await Promise.all(
    [...names].map(async (name) => {
      const addresses = await tools.host.resolve(name, resolveDeadline);
      if (addresses.length === 0) tools.warn(`${name} does not resolve here; the device is not told where its peer is`);
      return [name, addresses] as const;
    }),
  );
  return Object.fromEntries(entries);
}

async function takeOut(tools: Tools, { admin, network, name }: DeviceRequest, id: PeerId): Promise<void> {
  try {
    await admin.removePeer(network, id);
  } catch (error) {
    foreseen(error);
    tools.warn(
      `${printable(name)} stays in the network without anybody who has its keys; type: cpn peer remove ${network} ${id}`,
    );
  }
}

function foreseen(error: unknown): void {
  if (!(error instanceof CpnError)) throw error;
}
