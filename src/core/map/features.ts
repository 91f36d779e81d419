/** The contract's extensions that the connector uses, by their names in state files. */
export const features = [
  'enroll-idempotently',
  'enroll-identity',
  'enroll-identity-proof',
  'enroll-secret-tag',
  'enroll-current-networks',
  'enroll-current-peers',
  'enroll-follows-relay',
  'enroll-enforces-rules',
  'map-revision',
  'map-wait',
  'map-changes',
  'map-removed',
  'map-etag',
  'map-instance',
  'map-messages',
  'map-deletion',
  'peer-name',
  'peer-endpoint',
  'peer-key',
  'peer-key-proof',
  'peer-withdrawn',
  'peer-secret-tag',
  'peer-removal',
  'peer-report',
  'peer-follows-relay',
  'peer-enforces-rules',
  'peer-map',
  'peer-refused',
  'peer-masquerades',
  'peer-paths',
] as const;

export type Feature = (typeof features)[number];

/** Extensions for administrators' commands, which are checked when needed and never saved. */
export type AdminFeature =
  | 'enroll-profile'
  | 'network-route-edits'
  | 'network-map-age'
  | 'network-spread'
  | 'network-route-dns'
  | 'network-approval'
  | 'network-expected-routes'
  | 'peer-suspension'
  | 'peer-approval'
  | 'peer-expiry'
  | 'peer-tags'
  | 'key-peer-expiry'
  | 'key-tags'
  | 'network-health'
  | 'network-removals'
  | 'network-deletion'
  | 'network-events'
  | 'network-rules'
  | 'device-login'
  | 'network-self-enroll'
  | 'own-devices'
  | 'user-networks'
  | 'token-networks';

/** Returns the features among these names. A later version may have saved others. */
export function knownFeatures(names: readonly string[]): readonly Feature[] {
  return features.filter((feature) => names.includes(feature));
}

/** True if both lists have the same features, in any order. */
export function sameFeatures(one: readonly Feature[] | null, other: readonly Feature[] | null): boolean {
  if (one === null || other === null) return one === other;
  return one.length === other.length && one.every((feature) => other.includes(feature));
}

/** Where OpenAPI describes a feature: an operation, and a header or body field of it. */
interface FeaturePath {
  /** The names of path parameters differ between services. */
  readonly path: string;
  readonly method: string;
  readonly header?: string;
  readonly field?: string;
  /** A field of the resource in the reply. */
  readonly replied?: string;
}

const enroll = { path: '/api/networks/enroll', method: 'post' };
const readNetwork = { path: '/api/networks/{}', method: 'get' };
const changeNetwork = { path: '/api/networks/{}', method: 'patch' };
const createKey = { path: '/api/networks/{}/enrollment-keys', method: 'post' };
const changePeer = { path: '/api/networks/{}/peers/{}', method: 'patch' };

const places: Readonly<Record<Feature, FeaturePath>> = {
  'enroll-idempotently': { ...enroll, header: 'idempotency-key' },
  'enroll-identity': { ...enroll, header: 'peer-identity-key' },
  'enroll-identity-proof': { ...enroll, header: 'peer-identity-proof' },
  'enroll-secret-tag': { ...enroll, header: 'network-secret-tag' },
  'enroll-current-networks': { ...enroll, header: 'current-networks' },
  'enroll-current-peers': { ...enroll, header: 'current-peers' },
  'enroll-follows-relay': { ...enroll, field: 'follows_relay' },
  'enroll-enforces-rules': { ...enroll, field: 'enforces_rules' },
  'map-revision': { ...readNetwork, header: 'if-none-match' },
  'map-wait': { ...readNetwork, header: 'prefer' },
  'map-changes': { ...readNetwork, header: 'a-im' },
  'map-removed': { ...readNetwork, replied: 'removed' },
  'map-etag': { ...readNetwork, replied: 'etag' },
  'map-instance': { ...readNetwork, header: 'peer-instance' },
  'map-messages': { ...readNetwork, header: 'peer-messages' },
  'map-deletion': { ...readNetwork, header: 'network-deletion' },
  'peer-name': { ...changePeer, field: 'name' },
  'peer-endpoint': { ...changePeer, field: 'endpoint' },
  'peer-key': { ...changePeer, field: 'public_key' },
  'peer-key-proof': { ...changePeer, field: 'key_proof' },
  'peer-withdrawn': { ...changePeer, field: 'withdrawn' },
  'peer-secret-tag': { ...changePeer, field: 'network_secret_tag' },
  'peer-masquerades': { ...changePeer, field: 'masquerades' },
  'peer-removal': { path: changePeer.path, method: 'delete' },
  'peer-report': { path: `${changePeer.path}/report`, method: 'post' },
  'peer-follows-relay': { path: `${changePeer.path}/report`, method: 'post', field: 'follows_relay' },
  'peer-enforces-rules': { path: `${changePeer.path}/report`, method: 'post', field: 'enforces_rules' },
  'peer-map': { path: `${changePeer.path}/report`, method: 'post', field: 'map' },
  'peer-refused': { path: `${changePeer.path}/report`, method: 'post', field: 'refused' },
  'peer-paths': { path: '/api/networks/{}/peers/self/paths', method: 'post' },
};

const adminPlaces: Readonly<Record<AdminFeature, FeaturePath>> = {
  'enroll-profile': { ...enroll, field: 'profile' },
  'network-map-age': { ...changeNetwork, field: 'map_max_age_seconds' },
  'network-spread': { ...changeNetwork, field: 'spread' },
  'network-approval': { ...changeNetwork, field: 'approval' },
  'network-route-dns': { ...changeNetwork, field: 'route_dns' },
  'network-route-edits': { ...changeNetwork, field: 'add_routes' },
  'network-expected-routes': { ...changeNetwork, field: 'expected_routes' },
  'peer-approval': { path: '/api/networks/{}/peers/{}/approve', method: 'post' },
  'peer-suspension': { ...changePeer, field: 'suspended' },
  'peer-expiry': { ...changePeer, field: 'expires_at' },
  'peer-tags': { ...changePeer, field: 'tags' },
  'key-peer-expiry': { ...createKey, field: 'peer_expires_in_hours' },
  'key-tags': { ...createKey, field: 'tags' },
  'network-health': { path: '/api/networks/{}/health', method: 'get' },
  'network-removals': { path: '/api/networks/{}/removals', method: 'get' },
  'network-deletion': places['map-deletion'],
  'network-events': { path: '/api/networks/{}/events', method: 'get' },
  'network-rules': { path: '/api/networks/{}/rules', method: 'put' },
  'device-login': { path: '/api/auth/device-codes/token', method: 'post' },
  'network-self-enroll': { ...changeNetwork, field: 'self_enroll' },
  'own-devices': { path: '/api/networks/{}/own-devices', method: 'post' },
  'user-networks': { path: '/api/users', method: 'post', field: 'networks' },
  'token-networks': { path: '/api/auth/tokens', method: 'post', field: 'networks' },
};

/** True if the OpenAPI 3 description has the extension. False for any other document. */
export function isDescribedForAdmins(feature: AdminFeature, document: unknown, basePath: string): boolean {
  return isDescribed(adminPlaces[feature], readPaths(document, basePath) ?? new Map(), document);
}

/**
 * Returns the features that an OpenAPI 3 description has; null for another document. Ignores parts
 * that break OpenAPI. The described paths may begin with `basePath`, the path of the service.
 */
export function findFeatures(document: unknown, basePath: string): readonly Feature[] | null {
  const items = readPaths(document, basePath);
  return items && features.filter((feature) => isDescribed(places[feature], items, document));
}

/** Returns the described operations by path below the base address; null without a description. */
function readPaths(document: unknown, basePath: string): Map<string, unknown> | null {
  const paths = member(document, 'paths');
  if (!isRecord(paths)) return null;
  const prefixes = serverPaths(document);
  const items = new Map<string, unknown>();
  for (const [path, item] of Object.entries(paths)) {
    if (!/\/(networks|users|auth)\b/.test(path) || path.length > maxPath) continue;
    for (const prefix of prefixes) items.set(plainPath(`${prefix}${path}`, basePath), item);
  }
  return items;
}

/** Longer than any path of a feature, with any parameter names. */
const maxPath = 300;

function isDescribed(
  { path, method, header, field, replied }: FeaturePath,
  items: Map<string, unknown>,
  document: unknown,
): boolean {
  const item = resolve(items.get(path), document);
  const operation = resolve(member(item, method), document);
  if (!isRecord(operation)) return false;
  if (header !== undefined) return [item, operation].some((each) => takesHeader(each, header, document));
  if (replied !== undefined) {
    const schema = schemaOf(resolve(member(operation.responses, '200'), document));
    const inner = member(member(resolve(schema, document), 'properties'), 'data');
    return [inner, schema].some((each) => hasField(each, replied, document));
  }
  if (field === undefined) return true;
  return hasField(schemaOf(resolve(operation.requestBody, document)), field, document);
}

/** The schema of a body, if it is described as JSON. */
function schemaOf(body: unknown): unknown {
  return member(member(member(body, 'content'), 'application/json'), 'schema');
}

function takesHeader(holder: unknown, header: string, document: unknown): boolean {
  const parameters = member(holder, 'parameters');
  if (!Array.isArray(parameters)) return false;
  return parameters.some((each) => {
    const parameter = resolve(each, document);
    const name = member(parameter, 'name');
    return member(parameter, 'in') === 'header' && typeof name === 'string' && name.toLowerCase() === header;
  });
}

/** The limit for nested `allOf`, `anyOf` and `oneOf`, and for references to references. */
const maxDepth = 8;

/** @param visited the schemas that were searched already: references may form a cycle */
function hasField(given: unknown, field: string, document: unknown, depth = 0, visited = new Set<unknown>()): boolean {
  const schema = resolve(given, document);
  if (!isRecord(schema) || visited.has(schema)) return false;
  visited.add(schema);
  if (isRecord(schema.properties) && Object.hasOwn(schema.properties, field)) return true;
  if (depth >= maxDepth) return false;
  const parts = ['allOf', 'anyOf', 'oneOf'].flatMap((word) => member(schema, word) ?? []);
  return parts.some((part) => hasField(part, field, document, depth + 1, visited));
}

/** Resolves a JSON pointer (RFC 6901) within the document. Returns other values unchanged. */
function resolve(given: unknown, document: unknown): unknown {
  let value = given;
  for (let depth = 0; depth < maxDepth; depth++) {
    const reference = member(value, '$ref');
    if (reference === undefined) return value;
    if (typeof reference !== 'string' || !reference.startsWith('#/') || reference.length > 1000) return undefined;
    const names = reference.slice(2).split('/');
    value = names.reduce<unknown>((at, name) => member(at, unescapePointer(name)), document);
  }
  return undefined;
}

function unescapePointer(name: string): string {
  try {
    return decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return name;
  }
}

/** The base paths to which the paths of a description are relative, and the empty path. */
function serverPaths(document: unknown): readonly string[] {
  const servers = member(document, 'servers');
  const urls = Array.isArray(servers) ? servers.slice(0, 4).map((server) => member(server, 'url')) : [];
  const found = urls.flatMap((url) => {
    const path = typeof url === 'string' ? URL.parse(url, 'http://localhost')?.pathname.replace(/\/+$/, '') : undefined;
    return path === undefined ? [] : [path];
  });
  return [...new Set(['', ...found])];
}

/** A path below the base address, with its parameter names removed. */
function plainPath(path: string, basePath: string): string {
  const below = basePath !== '' && path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : path;
  return below.replace(/\{[^{}]*\}/g, '{}');
}

function member(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
