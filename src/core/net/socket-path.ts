import { InvalidValue } from '../errors/index.ts';

/** Bytes of a path that the kernel takes (sun_path in unix(7)), without the zero at its end. */
const longest = 107;

/** True for `unix:PATH`, whatever PATH is. */
export function isSocketAddress(text: string): boolean {
  return /^unix:/i.test(text);
}

/**
 * Parses `unix:PATH` or `unix://PATH`, the address of a Unix socket.
 *
 * @param name the flag, for the error
 * @returns the path, which is absolute
 * @throws InvalidValue
 */
export function parseSocketAddress(name: string, text: string): string {
  const path = text.replace(/^unix:(?:\/\/(?=\/))?/i, '');
  const wrong = (rule: string) =>
    new InvalidValue(name, text, rule, 'write it like unix:/run/cpn-control-plane/api.sock');
  if (!path.startsWith('/')) throw wrong('has no absolute path');
  // A path in a URL and in a message stands as it is.
  if (!/^[\w/.,:@+~=-]+$/.test(path))
    throw wrong('has a path with other characters than letters, digits and "/._-,:@+~="');
  if (/\/\/|\/\.{0,2}$|\/\.{1,2}\//.test(path))
    throw wrong('has a path that ends with "/", or has "//", "." or ".." in it');
  if (path.length > longest) throw wrong(`has a path of more than ${longest} bytes`);
  return path;
}

/** The path of a Unix socket in the URL of a service; null for other URLs. */
export function socketPathOf(url: string): string | null {
  return isSocketAddress(url) ? url.slice('unix:'.length) : null;
}
