import { InvalidValue } from '../../core/errors/index.ts';

/**
 * Resolves a user's path relative to the base address of a service. Returns it with its query and
 * without the base. Throws InvalidValue for a path to another origin, or one that leaves the base
 * with dots.
 */
export function resolvePath(base: URL, given: string): string {
  const wrong = (rule: string) =>
    new InvalidValue('PATH', given.replace(/[?#].*$/s, ''), rule, 'write it like /api/networks');
  if (/^[a-z][a-z0-9+.-]*:/i.test(given) || /^[/\\]{2}/.test(given)) {
    throw wrong('is an address of its own; requests go to the service that you are logged in at, and to no other');
  }
  if (/[\s\p{Cc}\\#]/u.test(given)) throw wrong('has a character that no path has');
  const basePath = base.pathname.replace(/\/$/, '');
  const url = URL.parse(`${basePath}/${given.replace(/^\//, '')}`, base.href);
  if (url?.origin !== base.origin) throw wrong('is not a path');
  if (!url.pathname.startsWith(`${basePath}/`)) throw wrong('leads out of the base address of the service');
  return `${url.pathname.slice(basePath.length)}${url.search}`;
}
