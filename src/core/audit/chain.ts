/**
 * The chain of an organization's audit. The hash of each link covers its entry and, by the hash of
 * the link before it, all earlier ones. Others can verify it with SHA-256 and a JSON library.
 *
 * @module
 */
import { createHash } from 'node:crypto';
import stringify from 'safe-stable-stringify';

type Id = number | string | null;

/** The fields of an entry that its link covers: all but its place in the chain. */
export interface ChainedEntry {
  readonly id: Id;
  readonly at: string;
  readonly actor: { readonly kind: string; readonly id: Id; readonly name: string | null };
  readonly action: string;
  readonly target: ChainedEntry['actor'];
  readonly address: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The place of an entry in the chain: 1 for the first. */
export interface ChainPlace {
  readonly seq: number;
  readonly hash: string;
}

/** The hash before the first link. */
export const chainStart = '';

/** SHA-256, in base64url, of the entry as JSON without spaces, with sorted names. */
export function digestEntry({ id, at, actor, action, target, address, details }: ChainedEntry): string {
  return sha256(String(stringify({ id, at, actor, action, target, address, details })));
}

/** SHA-256, in base64url, of three lines: the hash of the link before, the number, the digest. */
export function hashLink(previous: string, seq: number, digest: string): string {
  return sha256(`${previous}\n${seq}\n${digest}\n`);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
