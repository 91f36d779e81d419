import { BadReply, Refused } from '../core/errors/index.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import { HttpClient } from './http/client.ts';
import type { ClientOptions } from './http/client-options.ts';
import { resolvePath } from './http/target.ts';
import type { RawRequest } from './raw-service.ts';

const description = '/docs/api/openapi.json';

/**
 * True if the OpenAPI description has an operation without a token. False without a description.
 *
 * @throws Unreachable
 */
export async function needsNoToken(
  address: ServiceAddress,
  { method, path }: Pick<RawRequest, 'method' | 'path'>,
  options: ClientOptions = {},
): Promise<boolean> {
  const http = new HttpClient(address, options);
  const below = resolvePath(http.url, path).replace(/\?.*$/, '');
  const document = await read(http);
  const item = findPath(member(document, 'paths'), [below, `${http.url.pathname.replace(/\/$/, '')}${below}`]);
  const operation = member(item, method.toLowerCase()) ?? (method === 'HEAD' ? member(item, 'get') : undefined);
  if (operation === undefined) return false;
  // Each entry is one way in, an empty one without a token (OpenAPI 3.1). No entries: open to all.
  const requirements = member(operation, 'security') ?? member(document, 'security') ?? [];
  return (
    Array.isArray(requirements) &&
    (requirements.length === 0 ||
      requirements.some(
        (requirement) =>
          typeof requirement === 'object' && requirement !== null && Object.keys(requirement).length === 0,
      ))
  );
}

async function read(http: HttpClient): Promise<unknown> {
  const what = 'reading the description of the service';
  try {
    return (await http.call({ what, method: 'GET', path: description, repeatable: true, answered: true })).body;
  } catch (error) {
    if (error instanceof Refused || error instanceof BadReply) return null;
    throw error;
  }
}

/** The description of these paths; one without parameters takes precedence. */
function findPath(paths: unknown, wanted: readonly string[]): unknown {
  if (typeof paths !== 'object' || paths === null) return undefined;
  const templates = Object.keys(paths).filter((template) => wanted.some((path) => matches(template, path)));
  const [closest] = templates.sort((one, other) => one.split('{').length - other.split('{').length);
  return closest === undefined ? undefined : member(paths, closest);
}

function matches(template: string, path: string): boolean {
  const [wanted, parts] = [template.split('/'), path.split('/')];
  if (wanted.length !== parts.length) return false;
  return wanted.every((word, index) => word === parts[index] || (/^\{[^{}]+\}$/.test(word) && parts[index] !== ''));
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}
