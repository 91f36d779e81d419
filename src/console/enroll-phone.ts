import { effect, signal } from '@preact/signals';
import nacl from 'tweetnacl';
import type { NewEnrollmentKey } from '../contract/enrollment-key.ts';
import type { Enrollment, Network } from '../contract/network.ts';
import type { Peer } from '../contract/peer.ts';
import { findProfileRoutes } from '../core/export/device-profile.ts';
import { ApiError, call, isOutcomeUnknown, send } from './client.ts';
import { draftPhoneConfig, nameFile, renderKeyAlone, renderPhoneConfig } from './logic/peers/phone-config.ts';
import { toSentence } from './logic/text/format.ts';

export interface PhoneRequest {
  readonly network: Network;
  readonly name: string;
  readonly expiresInHours: number | null;
  /** The only peer that the phone dials; null for all peers with an endpoint. */
  readonly connector: Peer | null;
}

/** An enrolled phone, and the wg-quick text with its private key, which exists only here. */
export interface Phone {
  readonly name: string;
  readonly address: string;
  readonly file: string;
  readonly config: string;
  /** Why the config contains only the key, or null. */
  readonly problem: string | null;
  readonly connector: Peer | null;
}

/** A sent enrolment. Sending it again creates no second peer. */
export interface PhoneEnrolment {
  readonly request: PhoneRequest;
  readonly keyPair: nacl.BoxKeyPair;
  readonly key: NewEnrollmentKey;
  readonly idempotencyKey: string;
}

/** The reply to an enrolment was lost, so the phone may be enrolled. */
export class OutcomeUnknown extends Error {
  readonly attempt: PhoneEnrolment;

  constructor(attempt: PhoneEnrolment) {
    super(
      'The control plane does not answer, and may have enrolled the phone. Press the button again: the page repeats this enrolment, and makes no second peer.',
    );
    this.attempt = attempt;
  }
}

/** Enrols a key pair of this page. @throws ApiError, OutcomeUnknown, or Error if no file fits */
export async function enrollPhone(request: PhoneRequest): Promise<Phone> {
  const { network, name, expiresInHours, connector } = request;
  refuseSecret(network, connector, name);
  draftPhoneConfig(network, connector);
  const key = await call<NewEnrollmentKey>('POST', keysOf(network), {
    name,
    max_uses: 1,
    expires_in_hours: 1,
    peer_types: ['admin_device'],
    ...(expiresInHours !== null && { peer_expires_in_hours: expiresInHours }),
  });
  return repeat({ request, keyPair: nacl.box.keyPair(), key, idempotencyKey: toBase64(nacl.randomBytes(16)) });
}

/** Sends an enrolment, also again after an unknown outcome. @throws ApiError, OutcomeUnknown */
export async function repeat(attempt: PhoneEnrolment): Promise<Phone> {
  const { request, keyPair, key, idempotencyKey } = attempt;
  const { network, name, connector } = request;
  const body = {
    enrollment_token: key.enrollment_token,
    name,
    peer_type: 'admin_device',
    public_key: toBase64(keyPair.publicKey),
    ...(connector !== null && { profile: { connector: connector.id, routes: findProfileRoutes(network.routes) } }),
  };
  try {
    const headers = { 'idempotency-key': idempotencyKey };
    const reply = await send('POST', 'api/networks/enroll', { body, headers });
    const { data }: { data: Enrollment } = await reply.json();
    // The reply to a phone that waits for approval has no other peer.
    const isWaiting = data.peer.awaiting_approval !== undefined;
    const whole = isWaiting ? { ...data, network: { ...network, peers: [...network.peers, data.peer] } } : data;
    return toPhone(whole, toBase64(keyPair.secretKey), connector);
  } catch (error) {
    if (!(error instanceof ApiError) || isOutcomeUnknown(error)) throw new OutcomeUnknown(attempt);
    // Best effort: the key expires within the hour.
    await call('DELETE', `${keysOf(network)}/${key.id}`).catch(() => undefined);
    const [rule] = error.fields.profile ?? [];
    throw rule === undefined ? error : new ApiError(error.status, toSentence(`the profile ${rule}`));
  }
}

/** From here on the peer exists, so its key must not be lost. */
function toPhone({ peer, network }: Enrollment, privateKey: string, connector: Peer | null): Phone {
  const { name, address } = peer;
  const phone = { name, address, file: nameFile(peer), connector };
  try {
    return { ...phone, config: renderPhoneConfig(network, peer, privateKey), problem: null };
  } catch (error) {
    return { ...phone, config: renderKeyAlone(peer, privateKey), problem: String(error) };
  }
}

/** Refuses hosts with a network secret, which the console lacks: they would ignore the phone. */
function refuseSecret({ id, peers }: Network, connector: Peer | null, name: string): void {
  const dialled = connector === null ? peers.filter(({ endpoint }) => endpoint !== null) : [connector];
  const secret = dialled.find(({ network_secret_tag }) => network_secret_tag !== undefined);
  if (secret === undefined) return;
  throw new Error(
    `${secret.name} uses a network secret and does not answer this phone. Type: cpn export ${id} --new-peer ${name.replace(/[^\w.-]+/g, '-')} --qr --network-secret-file FILE`,
  );
}

const keysOf = ({ id }: Network) => `api/networks/${id}/enrollment-keys`;
const toBase64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));

/** The enrolled phone with its private key. Outlives page and session, until the user closes it. */
export const keptPhone = signal<Phone | null>(null);

/** True while a phone is being enrolled. Its key is only in this page, which the user may leave. */
const isEnrolling = signal(false);

/** Enrols a phone and keeps its key. @throws Error while another phone is enrolled or kept */
export async function keepPhone(enroll: () => Promise<Phone>): Promise<void> {
  if (isEnrolling.value) throw new Error('Another phone is being enrolled. Wait until its key is shown.');
  if (keptPhone.value !== null) throw new Error('The key of another phone is shown. Close it first.');
  isEnrolling.value = true;
  try {
    keptPhone.value = await enroll();
  } finally {
    isEnrolling.value = false;
  }
}

/** Makes the browser prompt before it leaves the console. */
const hold = (event: Event) => event.preventDefault();

effect(() => {
  if (keptPhone.value === null && !isEnrolling.value) removeEventListener('beforeunload', hold);
  else addEventListener('beforeunload', hold);
});
