import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Role } from '../../src/contract/auth.ts';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane } from './harness.ts';

const roles: Role[] = ['owner', 'admin', 'member', 'viewer'];
type Who = Role | 'peer' | 'foreign owner' | 'nobody';

let plane: Plane;
const tokens = new Map<Who, string>();
const ids = { network: 0, key: 0, peer: 0 };

beforeAll(async () => {
  plane = await openPlane();
  for (const role of roles) tokens.set(role, await plane.signIn(role));
  tokens.set('foreign owner', await plane.signIn('owner', await plane.addOrganization('other')));
});
afterAll(() => closePlane(plane));

interface Operation {
  readonly method: string;
  readonly path: () => string;
  readonly body?: object;
  readonly success: number;
  readonly allowed: readonly Who[];
  /** What the owner of another organization gets: nothing of ours is there for it. */
  readonly foreign: number;
}

const editing: Who[] = ['owner', 'admin', 'member'];
const reading: Who[] = [...editing, 'viewer'];
const network = () => `/api/networks/${ids.network}`;
const operations: readonly Operation[] = [
  { method: 'GET', path: () => '/api/auth/me', success: 200, allowed: reading, foreign: 200 },
  { method: 'GET', path: () => '/api/networks', success: 200, allowed: reading, foreign: 200 },
  {
    method: 'POST',
    path: () => '/api/networks',
    body: { name: 'n', private_cidr: '10.1.0.0/24' },
    success: 201,
    allowed: editing,
    foreign: 201,
  },
  { method: 'GET', path: network, success: 200, allowed: [...reading, 'peer'], foreign: 404 },
  { method: 'PATCH', path: network, body: { name: 'x' }, success: 200, allowed: editing, foreign: 404 },
  {
    method: 'POST',
    path: () => `${network()}/enrollment-keys`,
    body: { name: 'k' },
    success: 201,
    allowed: editing,
    foreign: 404,
  },
  { method: 'GET', path: () => `${network()}/enrollment-keys`, success: 200, allowed: editing, foreign: 404 },
  {
    method: 'DELETE',
    path: () => `${network()}/enrollment-keys/${ids.key}`,
    success: 200,
    allowed: editing,
    foreign: 404,
  },
  {
    method: 'PATCH',
    path: () => `${network()}/peers/${ids.peer}`,
    body: { name: 'x' },
    success: 200,
    allowed: [...editing, 'peer'],
    foreign: 404,
  },
  {
    method: 'DELETE',
    path: () => `${network()}/peers/${ids.peer}`,
    success: 200,
    allowed: [...editing, 'peer'],
    foreign: 404,
  },
  { method: 'DELETE', path: network, success: 200, allowed: editing, foreign: 404 },
  { method: 'POST', path: () => '/api/auth/logout', success: 200, allowed: reading, foreign: 200 },
];

async function makeThings(): Promise<void> {
  const owner = await plane.signIn('owner');
  ids.network = await makeNetwork(plane, owner);
  const enrolled = await enroll(plane, await makeKey(plane, owner, ids.network));
  ids.peer = enrolled.body.data.peer.id;
  tokens.set('peer', enrolled.body.data.access_token);
  const keys = await plane.call('GET', `${network()}/enrollment-keys`, { token: owner });
  ids.key = keys.body.data[0].id;
}

function expected({ allowed, success, foreign }: Operation, who: Who): number {
  if (who === 'nobody') return 401;
  if (who === 'foreign owner') return foreign;
  return allowed.includes(who) ? success : 403;
}

const cases = operations.flatMap((operation) =>
  [...roles, 'peer', 'foreign owner', 'nobody'].map((who) => ({ who: who as Who, operation })),
);

test.each(cases)('$operation.method $operation.path by $who', async ({ who, operation }) => {
  await makeThings();
  // Logging out would take the shared session from the cases that follow.
  const leaves = operation.path().endsWith('/logout') && roles.includes(who as Role);
  const token = leaves ? await plane.signIn(who as Role) : tokens.get(who);
  const { method, body } = operation;
  const reply = await plane.call(method, operation.path(), { token, ...(body && { body }) });
  expect(reply.status).toBe(expected(operation, who));
  if (reply.status >= 400) expect(reply.body).toEqual({ message: expect.any(String) });
});

test('a refusal is given before the body is read', async () => {
  const refused = await plane.call('POST', '/api/networks', { token: tokens.get('viewer'), raw: '{' });
  expect(refused.status).toBe(403);
  expect((await plane.call('POST', '/api/networks', { raw: '{' })).status).toBe(401);
});
