import { InvalidValue } from '../../core/errors.ts';

/** What nft, wg-quick and /proc/sys all take for an interface's name; 15 bytes are the kernel's IFNAMSIZ. */
const pattern = /^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,14}$/;

/** Words of `wg show` and of /proc/sys/net, which stand for more than one interface or for none. */
const reserved = new Set(['all', 'default', 'interfaces']);

/** Lets a name into a tool's arguments, or throws InvalidValue. */
export function checkLinkName(name: string): string {
  if (!pattern.test(name) || reserved.has(name)) {
    throw new InvalidValue(
      'interface',
      name,
      'is not a name for an interface',
      'use letters, digits, "_", "-" and "."',
    );
  }
  return name;
}
