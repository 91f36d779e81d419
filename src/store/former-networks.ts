import * as z from 'zod';
import { type Identity, identityOf } from '../core/crypto/identity.ts';
import { type PublicKey, parsePublicKey } from '../core/crypto/keys.ts';
import { Secret } from '../core/crypto/secret.ts';
import { UnreadableFile } from '../core/errors/index.ts';
import { type Feature, knownFeatures } from '../core/map/features.ts';
import type { Id, PeerId } from '../core/map/model.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import { readText, removeFile, replaceFile } from './files/atomic-file.ts';
import { refuseForeign } from './files/file-trust.ts';

/** A network that this host left, and whose control plane may still list its peer. */
export interface FormerMembership {
  /** That of the network while it was joined. */
  readonly interface: string;
  /** ISO 8601. */
  readonly leftAt: string;
  readonly service: ServiceAddress;
  readonly features: readonly Feature[] | null;
  readonly network: { readonly id: Id; readonly name: string };
  readonly peer: { readonly id: PeerId; readonly name: string };
  readonly publicKey: PublicKey;
  /** Null in a network joined before there were identities. */
  readonly identity: Identity | null;
  /** The serial of the last proof that the identity gave. */
  readonly keySerial: number;
  /** The peer's own bearer, with which it is removed; null where the service gave none. */
  readonly accessToken: Secret | null;
}

/** What is kept of networks that this host left. */
export interface Former {
  /** The last one left comes first. */
  readonly memberships: readonly FormerMembership[];
  /** The folders that this program made, and that go with the last of them where no network is joined. */
  readonly folders: readonly string[];
}

const noFormer: Former = { memberships: [], folders: [] };

/**
 * The file, in the folder of the states. Versions before it take every name that ends in .json for a state, so that this one must not.
 */
export const formerName = 'former-memberships';

const formerVersion = 1;

const secret = z
  .string()
  .min(1)
  .transform((text) => new Secret(text));
const id = z.union([z.number(), z.string()]);

const schema = z.object({
  version: z.literal(formerVersion),
  folders: z.array(z.string()),
  memberships: z.array(
    z.object({
      interface: z.string(),
      leftAt: z.iso.datetime(),
      service: z.object({ url: z.string(), insecureHttp: z.boolean() }),
      features: z
        .array(z.string())
        .transform((names) => knownFeatures(names))
        .nullable(),
      network: z.object({ id, name: z.string() }),
      peer: z.object({ id, name: z.string() }),
      publicKey: z.string().transform((text) => parsePublicKey(text)),
      identity: secret.transform((seed) => identityOf(seed)).nullable(),
      keySerial: z.int(),
      accessToken: secret.nullable(),
    }),
  ),
});

/**
 * Reads the file at `path`; nothing where there is none.
 *
 * @throws UnreadableFile when it is damaged, of a later version, or may be of another user
 * @throws DiskFailed
 */
export async function readFormer(path: string): Promise<Former> {
  const text = await readText(path, (stats) => refuseForeign(path, stats));
  if (text === null) return noFormer;
  try {
    const { memberships, folders } = schema.parse(JSON.parse(text));
    return { memberships, folders };
  } catch {
    // The cause would quote what is in it.
    throw new UnreadableFile(path, 'is damaged or of a later version', 'use the cpn that wrote it, or remove it');
  }
}

/** Replaces the file at `path`; without memberships it is removed. @throws DiskFailed */
export async function writeFormer(path: string, { memberships, folders }: Former): Promise<void> {
  if (memberships.length === 0) return removeFile(path);
  const rows = memberships.map((each) => ({
    ...each,
    identity: each.identity?.seed.reveal() ?? null,
    accessToken: each.accessToken?.reveal() ?? null,
  }));
  await replaceFile(path, `${JSON.stringify({ version: formerVersion, folders, memberships: rows }, null, 2)}\n`);
}
