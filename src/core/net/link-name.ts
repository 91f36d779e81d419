import { InvalidValue } from '../errors/index.ts';

/**
 * Interface names that wg-quick, nft and /proc/sys all accept: wg-quick's pattern without `=` and
 * `+`, which the name of an nft table cannot contain. The kernel's IFNAMSIZ allows 15 bytes.
 */
const pattern = /^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,14}$/;

/** Words of `wg show` and of /proc/sys/net that mean several interfaces or none. */
const reserved = new Set(['all', 'default', 'interfaces']);

/** Checks an interface name, so that it is safe in a path and in a tool's arguments. */
export function parseLinkName(name: string, field = 'interface'): string {
  if (!pattern.test(name) || reserved.has(name)) {
    throw new InvalidValue(field, name, 'is not an interface name', 'use 1 to 15 of letters, digits, "_", "-" and "."');
  }
  return name;
}

/** True if sysctl keys and packet rules can contain the name. The kernel allows nearly any. */
export function isPlainLinkName(name: string): boolean {
  return /^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,14}$/.test(name);
}
