import { InvalidValue } from '../errors/index.ts';

/**
 * What wg-quick, nft and /proc/sys all take for an interface's name: wg-quick's pattern without `=` and `+`, which no
 * name of an nft table can hold; 15 bytes are the kernel's IFNAMSIZ.
 */
const pattern = /^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,14}$/;

/** Words of `wg show` and of /proc/sys/net, which stand for more than one interface or for none. */
const reserved = new Set(['all', 'default', 'interfaces']);

/** Checks the name of an interface, so that it may stand in a path and in a tool's arguments. */
export function parseLinkName(name: string, field = 'interface'): string {
  if (!pattern.test(name) || reserved.has(name)) {
    throw new InvalidValue(field, name, 'is not an interface name', 'use 1 to 15 of letters, digits, "_", "-" and "."');
  }
  return name;
}

/** True for an interface that can be named in a key and in a packet rule; the kernel lets names hold nearly anything. */
export function isPlainLinkName(name: string): boolean {
  return /^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,14}$/.test(name);
}
