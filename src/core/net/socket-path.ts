import { InvalidValue } from '../errors/index.ts';

/** The maximum bytes of a path in the kernel (sun_path in unix(7)), without the final zero. */
const longest = 107;

/** True for `unix:PATH`, even if PATH is not valid. */
export function isSocketAddress(text: string): boolean {
  return /^unix:/i.test(text);
}

/**
 * Parses `unix:PATH` or `unix://PATH` to the absolute path. Errors name the flag `name`.
 *
 * @throws InvalidValue
 */
export function parseSocketAddress(name: string, text: string): string {
  const path = text.replace(/^unix:(?:\/\/(?=\/))?/i, '');
  const wrong = (rule: string) =>
    new InvalidValue(name, text, rule, 'write it like unix:/run/cpn-control-plane/api.sock');
  if (!path.startsWith('/')) throw wrong('has no absolute path');
  // These characters need no escaping in a URL or a message.
  if (!/^[\w/.,:@+~=-]+$/.test(path))
    throw wrong('has a path with other characters than letters, digits and "/._-,:@+~="');
  if (/\/\/|\/\.{0,2}$|\/\.{1,2}\//.test(path))
    throw wrong('has a path that ends with "/", or has "//", "." or ".." in it');
  if (path.length > longest) throw wrong(`has a path of more than ${longest} bytes`);
  return path;
}

/** The path of a Unix socket in the URL of a service. Null for other URLs. */
export function socketPathOf(url: string): string | null {
  return isSocketAddress(url) ? url.slice('unix:'.length) : null;
}
