import { afterAll, beforeAll, expect, test } from 'vitest';
import { closePlane, openPlane, type Plane } from '../harness.ts';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly { in: string; name: string; required?: boolean; schema: object }[];
  readonly requestBody?: { content: Record<string, { schema: object }> };
  readonly responses: Record<string, { description: string; content?: object; headers?: Record<string, object> }>;
  readonly security: readonly Record<string, readonly string[]>[];
  readonly 'x-roles': readonly string[];
}

let plane: Plane;
// biome-ignore lint/suspicious/noExplicitAny: the document is what is under test.
let document: any;
const operations = new Map<string, Operation>();

beforeAll(async () => {
  plane = await openPlane();
  const reply = await plane.call('GET', '/docs/api/openapi.json');
  expect(reply.status).toBe(200);
  document = reply.body;
  for (const [path, item] of Object.entries<Record<string, Operation>>(document.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      operations.set(`${method.toUpperCase()} ${path}`, operation);
    }
  }
});
afterAll(() => closePlane(plane));

const all = ['owner', 'admin', 'member', 'viewer'];
const oam = ['owner', 'admin', 'member'];
const refusals = ['401', '403', '422', '429'];
const oa = ['owner', 'admin'];
const expected: Record<string, { roles: string[]; peer?: true; sessionOnly?: true; replies: string[] }> = {
  'GET /healthz': { roles: [], replies: ['200', '429'] },
  'GET /readyz': { roles: [], replies: ['200', '429', '503'] },
  'GET /metrics': { roles: [], replies: ['200', '403', '429'] },
  'GET /docs/api/openapi.json': { roles: [], replies: ['200', '304', '429'] },
  'POST /api/auth/login': { roles: [], replies: ['200', '413', '415', ...refusals] },
  'POST /api/auth/device-codes': { roles: [], replies: ['201', '404', '413', '415', ...refusals] },
  'POST /api/auth/device-codes/token': { roles: [], replies: ['200', '400', '413', '415', ...refusals] },
  'GET /api/auth/device-codes/{user_code}': { roles: all, sessionOnly: true, replies: ['200', '404', ...refusals] },
  'POST /api/auth/device-codes/{user_code}/approval': {
    roles: all,
    sessionOnly: true,
    replies: ['200', '404', '413', '415', ...refusals],
  },
  'GET /api/auth/methods': { roles: [], replies: ['200', '429'] },
  'POST /api/auth/single-sign-on': { roles: [], replies: ['200', '413', '415', ...refusals] },
  'POST /api/auth/single-sign-on/session': { roles: [], replies: ['200', '413', '415', ...refusals] },
  'POST /api/auth/single-sign-on/logout': { roles: [], replies: ['200', '400', '413', '415', ...refusals] },
  'GET /api/auth/me': { roles: all, replies: ['200', ...refusals] },
  'POST /api/auth/logout': { roles: all, replies: ['200', '413', '415', ...refusals] },
  'GET /api/auth/tokens': { roles: all, replies: ['200', ...refusals] },
  'POST /api/auth/tokens': { roles: all, sessionOnly: true, replies: ['201', '413', '415', ...refusals] },
  'DELETE /api/auth/tokens/{id}': { roles: all, replies: ['200', '404', ...refusals] },
  'POST /api/networks/{network}/own-devices': {
    roles: all,
    sessionOnly: true,
    replies: ['201', '404', '413', '415', ...refusals],
  },
  'GET /api/auth/devices': { roles: all, replies: ['200', ...refusals] },
  'PATCH /api/auth/devices/{peer}': { roles: all, replies: ['200', '404', '413', '415', ...refusals] },
  'DELETE /api/auth/devices/{peer}': { roles: all, replies: ['200', '404', ...refusals] },
  'GET /api/auth/sessions': { roles: all, replies: ['200', ...refusals] },
  'DELETE /api/auth/sessions/{id}': { roles: all, replies: ['200', '404', ...refusals] },
  'PUT /api/auth/password': { roles: all, sessionOnly: true, replies: ['200', '413', '415', ...refusals] },
  'POST /api/auth/login/second-factor': { roles: [], replies: ['200', '413', '415', ...refusals] },
  'GET /api/auth/factors': { roles: all, sessionOnly: true, replies: ['200', ...refusals] },
  'POST /api/auth/factors/challenges': { roles: all, sessionOnly: true, replies: ['201', '413', '415', ...refusals] },
  'POST /api/auth/factors': { roles: all, sessionOnly: true, replies: ['201', '413', '415', ...refusals] },
  'DELETE /api/auth/factors/{id}': { roles: all, sessionOnly: true, replies: ['200', '404', ...refusals] },
  'POST /api/auth/factors/recovery-codes': { roles: all, sessionOnly: true, replies: ['201', ...refusals] },
  'GET /api/users': { roles: oa, replies: ['200', ...refusals] },
  'POST /api/users': { roles: oa, sessionOnly: true, replies: ['201', '413', '415', ...refusals] },
  'PATCH /api/users/{user}': { roles: ['owner'], replies: ['200', '404', '413', '415', ...refusals] },
  'DELETE /api/users/{user}': { roles: oa, replies: ['200', '404', ...refusals] },
  'PUT /api/users/{user}/link': {
    roles: ['owner'],
    sessionOnly: true,
    replies: ['200', '404', '413', '415', ...refusals],
  },
  'DELETE /api/users/{user}/link': { roles: ['owner'], sessionOnly: true, replies: ['200', '404', ...refusals] },
  'DELETE /api/users/{user}/factors': { roles: oa, sessionOnly: true, replies: ['200', '404', ...refusals] },
  'GET /api/users/{user}/sessions': { roles: oa, replies: ['200', '404', ...refusals] },
  'DELETE /api/users/{user}/sessions': { roles: oa, replies: ['200', '404', ...refusals] },
  'DELETE /api/users/{user}/sessions/{session}': { roles: oa, replies: ['200', '404', ...refusals] },
  'GET /api/audit': { roles: oa, replies: ['200', ...refusals] },
  'GET /api/audit/chain': { roles: oa, replies: ['200', ...refusals] },
  'GET /api/networks': { roles: all, replies: ['200', ...refusals] },
  'POST /api/networks': { roles: oam, replies: ['201', '413', '415', ...refusals] },
  'GET /api/networks/{network}': { roles: all, peer: true, replies: ['200', '226', '304', '404', '410', ...refusals] },
  'PATCH /api/networks/{network}': { roles: oam, replies: ['200', '404', '409', '413', '415', ...refusals] },
  'DELETE /api/networks/{network}': { roles: oam, replies: ['200', '404', ...refusals] },
  'POST /api/networks/{network}/enrollment-keys': { roles: oam, replies: ['201', '404', '413', '415', ...refusals] },
  'GET /api/networks/{network}/enrollment-keys': { roles: oam, replies: ['200', '404', ...refusals] },
  'DELETE /api/networks/{network}/enrollment-keys/{key}': { roles: oam, replies: ['200', '404', ...refusals] },
  'POST /api/networks/enroll': { roles: [], replies: ['201', '409', '412', '413', '415', ...refusals] },
  'GET /api/health': { roles: all, replies: ['200', ...refusals] },
  'GET /api/networks/{network}/peers/{peer}': { roles: all, replies: ['200', '404', ...refusals] },
  'GET /api/networks/{network}/peers/{peer}/traffic': { roles: all, replies: ['200', '404', ...refusals] },
  'GET /api/networks/{network}/traffic': { roles: all, replies: ['200', '404', ...refusals] },
  'GET /api/networks/{network}/peers': { roles: all, peer: true, replies: ['200', '404', ...refusals] },
  'PATCH /api/networks/{network}/peers/{peer}': {
    roles: oam,
    peer: true,
    replies: ['200', '404', '409', '413', '415', ...refusals],
  },
  'GET /api/networks/{network}/events': { roles: all, replies: ['200', '404', ...refusals] },
  'GET /api/networks/{network}/rules': { roles: all, replies: ['200', '404', ...refusals] },
  'PUT /api/networks/{network}/rules': { roles: oa, replies: ['200', '404', '412', '413', '415', ...refusals] },
  'POST /api/networks/{network}/rules/confirm': {
    roles: oa,
    replies: ['200', '404', '409', '412', ...refusals],
  },
  'POST /api/networks/{network}/rules/preview': { roles: oam, replies: ['200', '404', '413', '415', ...refusals] },
  'GET /api/networks/{network}/rules/why': { roles: all, replies: ['200', '404', ...refusals] },
  'GET /api/networks/{network}/rules/reach': { roles: all, replies: ['200', '404', ...refusals] },
  'GET /api/networks/{network}/removals': { roles: all, replies: ['200', '404', ...refusals] },
  'GET /api/networks/{network}/health': { roles: all, peer: true, replies: ['200', '304', '404', ...refusals] },
  'POST /api/networks/{network}/peers/{peer}/report': {
    roles: [],
    peer: true,
    replies: ['200', '404', '413', '415', ...refusals],
  },
  'POST /api/networks/{network}/peers/self/paths': {
    roles: [],
    peer: true,
    replies: ['204', '404', '413', '415', ...refusals],
  },
  'POST /api/networks/{network}/peers/{peer}/approve': { roles: oa, replies: ['200', '404', '409', ...refusals] },
  'DELETE /api/networks/{network}/peers/{peer}': { roles: oam, peer: true, replies: ['200', '404', ...refusals] },
};

test('the document is OpenAPI 3.1 with the version of the contract', () => {
  expect(document.openapi).toMatch(/^3\.1\.\d+$/);
  expect(document.info).toMatchObject({ title: expect.any(String), version: '1.0.0' });
  // A client resolves it against the address of the document, which may have a proxy's path in front.
  const [server] = document.servers as { url: string }[];
  expect(new URL(server?.url ?? '', 'https://host/cp/docs/api/openapi.json').href).toBe('https://host/cp/');
  expect(document.components.securitySchemes).toMatchObject({
    session: { type: 'http', scheme: 'bearer' },
    personal: { type: 'http', scheme: 'bearer' },
    peer: { type: 'http', scheme: 'bearer' },
  });
});

test('it is not sent again to who has it', async () => {
  const first = await plane.call('GET', '/docs/api/openapi.json');
  const etag = first.headers.get('etag') ?? '';
  expect(etag).toMatch(/^"[\w-]{22}"$/);
  const again = await plane.call('GET', '/docs/api/openapi.json', { headers: { 'if-none-match': etag } });
  expect([again.status, again.headers.get('etag')]).toEqual([304, etag]);
});

test('it lists each operation, and no other', () => {
  expect([...operations.keys()].sort()).toEqual(Object.keys(expected).sort());
  const ids = [...operations.values()].map(({ operationId }) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
});

test.each(Object.entries(expected))(
  '%s has its roles, its credentials and its replies',
  (name, { roles, peer, sessionOnly, replies }) => {
    const operation = operations.get(name);
    expect(operation?.['x-roles']).toEqual(roles);
    const session = roles.length === 0 ? [] : [{ session: [] }, ...(sessionOnly ? [] : [{ personal: [] }])];
    expect(operation?.security).toEqual([...session, ...(peer ? [{ peer: [] }] : [])]);
    // What this side may be to blame for is the same everywhere: 504 where something may have been done.
    const blame = ['500', '503', ...(name.startsWith('GET ') ? [] : ['504'])];
    expect(Object.keys(operation?.responses ?? {}).sort()).toEqual([...new Set([...replies, ...blame])].sort());
    expect(operation?.summary).toEqual(expect.any(String));
  },
);

test.each(Object.keys(expected))('%s describes each reply, and each part of its path', (name) => {
  const operation = operations.get(name);
  for (const [status, { description, content, headers }] of Object.entries(operation?.responses ?? {})) {
    expect(description).toMatch(/^[A-Z].*\.$/);
    if (Number(status) >= 400) {
      const schema = { $ref: '#/components/schemas/Refusal' };
      expect(content).toEqual({ 'application/json': { schema } });
    }
    if (status === '429' || status === '503') expect(Object.keys(headers ?? {})).toEqual(['Retry-After']);
  }
  const inPath = [...name.matchAll(/\{(\w+)\}/g)].map(([, part]) => part);
  const declared = (operation?.parameters ?? []).filter((parameter) => parameter.in === 'path');
  expect(declared.map((parameter) => parameter.name)).toEqual(inPath);
  for (const { name: part, required, schema } of declared) {
    const type = part === 'user_code' ? 'string' : 'integer';
    expect([required, schema]).toMatchObject([true, { type }]);
  }
});

test('every reference leads somewhere, and no schema is there for nothing', () => {
  const text = JSON.stringify(document);
  const referenced = new Set([...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name));
  expect([...referenced].sort()).toEqual(Object.keys(document.components.schemas).sort());
  expect(text.match(/\$ref/g)?.length).toBe(text.match(/"\$ref":"#\/components\/schemas\/\w+"/g)?.length);
});

test('the extensions are named, so that a connector finds them', () => {
  const enroll = operations.get('POST /api/networks/enroll');
  expect(enroll?.parameters).toContainEqual(
    expect.objectContaining({ in: 'header', name: 'Idempotency-Key', required: false }),
  );
  expect(enroll?.description).toContain('Idempotency-Key');
  expect(document.components.schemas.Enrollment.required).toContain('access_token');
  const read = operations.get('GET /api/networks/{network}');
  expect(read?.parameters).toContainEqual(
    expect.objectContaining({ in: 'header', name: 'If-None-Match', required: false }),
  );
  expect(read?.parameters).toContainEqual(expect.objectContaining({ in: 'header', name: 'Prefer', required: false }));
  expect(read?.description).toContain('Prefer: wait=N');
  expect(read?.parameters).toContainEqual(expect.objectContaining({ in: 'header', name: 'A-IM', required: false }));
  expect(read?.description).toContain('A-IM: cpn-delta');
  expect(document.info.description).toContain('Prefer: wait=N and A-IM: cpn-delta at GET /api/networks/{network}');
  expect(document.info.description).toContain('withdrawn at PATCH /api/networks/{network}/peers/{peer}');
  expect(operations.get('PATCH /api/networks/{network}/peers/{peer}')?.description).toContain('withdrawn');
  for (const schema of ['ChangePeer', 'Peer']) {
    expect(document.components.schemas[schema].properties.withdrawn).toMatchObject({ type: 'array' });
  }
  expect(document.info.description).toContain('page, per_page and links.next of lists');
  for (const path of ['networks', 'networks/{network}/peers', 'networks/{network}/enrollment-keys', 'users', 'audit']) {
    const parameters = operations.get(`GET /api/${path}`)?.parameters ?? [];
    expect(parameters.map(({ name }) => name)).toEqual(expect.arrayContaining(['page', 'per_page']));
  }
  for (const status of ['200', '304']) {
    expect(Object.keys(read?.responses[status]?.headers ?? {})).toEqual(['ETag', 'Preference-Applied']);
  }
  const ofDelta = ['ETag', 'Preference-Applied', 'IM', 'Delta-Base'];
  expect(Object.keys(read?.responses['226']?.headers ?? {})).toEqual(ofDelta);
  const { NetworkDelta, NetworkReading } = document.components.schemas;
  expect(NetworkDelta.required).toEqual(expect.arrayContaining(['base', 'peers', 'removed']));
  expect(NetworkReading.properties.base).toBeUndefined();
});

test('requests are described as they may be sent, and replies as open to more', () => {
  const { schemas } = document.components;
  expect(schemas.CreateEnrollmentKey.required).toEqual(['name']);
  expect(schemas.CreateEnrollmentKey.properties.max_uses).toMatchObject({ minimum: 1, maximum: 10, default: 1 });
  expect(schemas.CreateNetwork.properties.name).toMatchObject({ minLength: 1, maxLength: 120 });
  expect(JSON.stringify(document)).not.toContain('"additionalProperties":false');
});
