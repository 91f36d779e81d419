/** Digits of a fingerprint: 16 bytes. */
const length = 32;

/**
 * The form in which people compare a key of 32 bytes, given in base64: its first 16 bytes in
 * hexadecimal, in groups of four digits. To find a key with the fingerprint of another one costs as
 * much as to break that key.
 */
export function fingerprintOf(key: string): string {
  const digits = [...atob(key)].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, '0')).join('');
  return (digits.slice(0, length).match(/.{4}/g) ?? []).join(' ');
}

/** Ignores case, spaces, colons and hyphens, as people type it. */
export function isSameFingerprint(one: string, other: string): boolean {
  return digitsOf(one) === digitsOf(other);
}

/** True for a whole fingerprint. The beginning of one is not enough: it costs little to match. */
export function isFingerprint(typed: string): boolean {
  return digitsOf(typed).length === length && /^[0-9a-f]+$/.test(digitsOf(typed));
}

function digitsOf(typed: string): string {
  return typed.toLowerCase().replace(/[\s:-]/g, '');
}

/** The key by which people identify a host: its identity, or its WireGuard key if it has none. */
export function comparedKeyOf(peer: {
  readonly identity_key?: string | null | undefined;
  readonly public_key: string;
}) {
  return peer.identity_key ?? peer.public_key;
}
