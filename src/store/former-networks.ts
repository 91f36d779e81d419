import * as v from 'valibot';
import { type Identity, identityOf } from '../core/crypto/identity.ts';
import { type PublicKey, parsePublicKey } from '../core/crypto/keys.ts';
import type { Secret } from '../core/crypto/secret.ts';
import { UnreadableFile } from '../core/errors/index.ts';
import type { Feature } from '../core/map/features.ts';
import type { Id, PeerId } from '../core/map/model.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import { readText, removeFile, replaceFile } from './files/atomic-file.ts';
import {
  features,
  formatServiceAddress,
  instant,
  int,
  parseAs,
  peerId,
  secret,
  serviceAddress,
} from './files/file-schema.ts';
import { refuseForeign } from './files/file-trust.ts';

/** A network that this host left, and whose control plane may still list its peer. */
export interface FormerMembership {
  /** The interface of the network while it was joined. */
  readonly interface: string;
  /** ISO 8601. */
  readonly leftAt: string;
  readonly service: ServiceAddress;
  readonly features: readonly Feature[] | null;
  readonly network: { readonly id: Id; readonly name: string };
  readonly peer: { readonly id: PeerId; readonly name: string };
  readonly publicKey: PublicKey;
  /** Null for a network that was joined before identities existed. */
  readonly identity: Identity | null;
  /** The serial of the identity's last key proof. */
  readonly keySerial: number;
  /** The peer's own bearer token, which authorizes its removal. Null if the service issued none. */
  readonly accessToken: Secret | null;
}

export interface Former {
  /** The most recently left network comes first. */
  readonly memberships: readonly FormerMembership[];
  /** Folders that cpn created, removed with the last membership if no network is joined. */
  readonly folders: readonly string[];
}

const noFormer: Former = { memberships: [], folders: [] };

/** In the folder of the states. No .json: earlier versions treat every .json file as a state. */
export const formerName = 'former-memberships';

const formerVersion = 1;

const schema = v.object({
  version: v.literal(formerVersion),
  folders: v.array(v.string()),
  memberships: v.array(
    v.object({
      interface: v.string(),
      leftAt: instant,
      service: serviceAddress,
      features: v.nullable(features),
      network: v.object({ id: peerId, name: v.string() }),
      peer: v.object({ id: peerId, name: v.string() }),
      publicKey: v.pipe(v.string(), v.transform(parsePublicKey)),
      identity: v.nullable(v.pipe(secret, v.transform(identityOf))),
      keySerial: int,
      accessToken: v.nullable(secret),
    }),
  ),
});

/**
 * Reads the file at `path`. Empty if it does not exist.
 *
 * @throws UnreadableFile if it is damaged, has a later version, or may be from another user
 * @throws DiskFailed
 */
export async function readFormer(path: string): Promise<Former> {
  const text = await readText(path, (stats) => refuseForeign(path, stats));
  if (text === null) return noFormer;
  try {
    const { memberships, folders } = parseAs(schema, JSON.parse(text));
    return { memberships, folders };
  } catch {
    // Drops the cause, which would quote secrets of the file.
    throw new UnreadableFile(path, 'is damaged or of a later version', 'use the cpn that wrote it, or remove it');
  }
}

/** Replaces the file at `path`. Without memberships, removes it. @throws DiskFailed */
export async function writeFormer(path: string, { memberships, folders }: Former): Promise<void> {
  if (memberships.length === 0) return removeFile(path);
  const rows = memberships.map((each) => ({
    ...each,
    service: formatServiceAddress(each.service),
    identity: each.identity?.seed.reveal() ?? null,
    accessToken: each.accessToken?.reveal() ?? null,
  }));
  await replaceFile(path, `${JSON.stringify({ version: formerVersion, folders, memberships: rows }, null, 2)}\n`);
}
