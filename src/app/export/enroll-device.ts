import type { AdminService, Network } from '../../api/admin-service.ts';
import type { Enrolled } from '../../api/service.ts';
import { type KeyPair, makeKeyPair } from '../../core/crypto/keys.ts';
import { tagOf } from '../../core/crypto/network-secret.ts';
import { Secret } from '../../core/crypto/secret.ts';
import { expectCpnError, printable, Refused } from '../../core/errors/index.ts';
import type { ConnectorProfile } from '../../core/export/device-profile.ts';
import type { NetworkMap, Peer, PeerId } from '../../core/map/model.ts';
import type { Options } from '../../core/map/options.ts';
import { addressAt, type Prefix, rangeOf } from '../../core/net/cidr.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import { readFeatures } from '../service-features.ts';
import type { Tools } from '../tools.ts';
import { type DeviceTunnel, desireDevice, resolveEndpoints, toMap } from './device-tunnel.ts';

/** A device without `cpn`, such as a phone, that becomes a separate peer. */
export interface DeviceRequest {
  readonly admin: AdminService;
  readonly address: ServiceAddress;
  readonly network: Network;
  readonly name: string;
  readonly link: string;
  readonly options: Options;
  /** The secret of the network's hosts, without which none of them answers; null for none. */
  readonly networkSecret: Secret | null;
  /** The only connector that the device dials; null for all peers with an endpoint. */
  readonly connector: Network['peers'][number] | null;
}

/** A device and its tunnel. Its keys exist only here. */
export interface EnrolledDevice extends DeviceTunnel {
  readonly id: PeerId;
  readonly name: string;
  readonly range: Prefix;
  /** True if an administrator has yet to approve it. */
  readonly isWaiting: boolean;
}

export interface DeviceDelivery {
  /** Throws if a device cannot be handed over. `draft` has the maximum size, and no enrolment. */
  check(draft: EnrolledDevice): Promise<void>;
  handOver(device: EnrolledDevice): Promise<void>;
}

/**
 * Creates a key pair for a device, enrols it as an administrator, and hands over the result.
 * Nothing of it is kept on this host. A device that could not be handed over is not enrolled. If
 * the delivery fails anyway, the peer is removed, because its keys are lost.
 */
export async function enrollDevice(tools: Tools, request: DeviceRequest, delivery: DeviceDelivery): Promise<void> {
  const keyPair = makeKeyPair(tools.random(32));
  const { connector } = request;
  const known = toMap(request.network);
  const { first, last } = rangeOf(known.cidr);
  const draft: Peer = {
    ...{ id: 'draft', name: request.name, type: 'admin_device', publicKey: keyPair.publicKey },
    // No address of the network has a longer text.
    address: addressAt(last - first > 1n ? last - 1n : last),
    ...{ endpoint: null, routes: null, withdrawn: [] },
  };
  const dialled = connector === null ? known.peers : known.peers.filter(({ id }) => id === connector.id);
  const resolved = await resolveEndpoints(tools, dialled);
  const compose = (map: NetworkMap, peer: Enrolled['peer']): EnrolledDevice => ({
    ...desireDevice({ ...request, map, resolved, keyPair, peer, connector: connector?.id ?? null }),
    ...{ id: peer.id, name: peer.name, range: map.cidr, isWaiting: isWaiting(map, peer) },
  });
  const drafted = compose({ ...known, peers: [...known.peers, draft] }, draft);
  await delivery.check(drafted);
  const { map, peer } = await enroll(tools, request, keyPair, drafted.profile);
  try {
    // The service keeps the routes that it was sent.
    const whole = isWaiting(map, peer) ? { ...known, peers: [...known.peers, ...map.peers] } : map;
    const sent = drafted.profile === null ? whole : { ...whole, routes: known.routes };
    await delivery.handOver(compose(sent, peer));
  } catch (error) {
    await removeEnrolled(tools, request, peer.id);
    throw error;
  }
}

/** The map of a device that waits for approval has no other peer. */
function isWaiting({ peers }: NetworkMap, { id }: Enrolled['peer']): boolean {
  return peers.find((each) => each.id === id)?.awaitingApproval !== undefined;
}

async function enroll(tools: Tools, request: DeviceRequest, { publicKey }: KeyPair, profile: ConnectorProfile | null) {
  const { admin, address, network, name, networkSecret } = request;
  tools.progress(`enrolling ${name} at ${address.url}`);
  const key = await admin.createKey(network.id, {
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
      ...(profile && { profile: { connector: Number(profile.connector), routes: profile.routes as Prefix[] } }),
      ...(networkSecret && { secretTag: tagOf(networkSecret) }),
      idempotencyKey: Buffer.from(tools.random(16)).toString('hex'),
    });
  } catch (error) {
    // Best effort: the key expires within the hour.
    if (key.id !== null) await admin.revokeKey(network.id, key.id).catch(expectCpnError);
    if (!(error instanceof Refused)) await removeUnknown(tools, request, publicKey);
    throw error;
  }
}

async function removeUnknown(tools: Pick<Tools, 'warn'>, request: DeviceRequest, publicKey: string): Promise<void> {
  const { admin, network, name } = request;
  try {
    const { peers } = await admin.readNetwork(network.id);
    const peer = peers.find(({ public_key }) => public_key === publicKey);
    if (peer !== undefined) await removeEnrolled(tools, request, peer.id);
  } catch (error) {
    expectCpnError(error);
    tools.warn(`the outcome is unknown: "cpn peer list ${network.id}" shows whether ${printable(name)} is enrolled`);
  }
}

async function removeEnrolled(
  tools: Pick<Tools, 'warn'>,
  { admin, network, name }: DeviceRequest,
  id: PeerId,
): Promise<void> {
  try {
    await admin.removePeer(network.id, id);
  } catch (error) {
    expectCpnError(error);
    tools.warn(
      `${printable(name)} is still enrolled, but its keys were not saved; remove it with: cpn peer remove ${network.id} ${id}`,
    );
  }
}
