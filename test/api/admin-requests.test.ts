import { describe, expect, test } from 'vitest';
import { connectAdminService } from '../../src/api/admin-service.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { failureOf, unhurried } from './samples.ts';
import { brokenOff, bytes, json, type Reply, serve } from './server.ts';

const at = '2026-03-01T12:00:00.000Z';
const removals = { paths: { '/api/networks/{id}/removals': { get: {} } } };

/** An administrator of a service that describes itself so, and all that it is asked for. */
async function connect(description: Reply, ...replies: Reply[]) {
  let answered = 0;
  const { address, asked } = await serve((response, request) => {
    if (request.path.startsWith('/docs/')) return description(response, request);
    (replies[answered++] ?? replies.at(-1))?.(response, request);
  });
  const admin = connectAdminService(address, new Secret('t'), unhurried().options);
  return { admin, asked, described: () => asked.filter(({ path }) => path.startsWith('/docs/')).length };
}

describe('the query of a request', () => {
  test.each([
    [undefined, ''],
    [{}, ''],
    [{ all: undefined }, ''],
    [{ all: false }, ''],
    [{ all: true }, '?all=true'],
  ])('of %j is %j', async (query, sent) => {
    const { admin, asked } = await connect(json(404, {}), json(200, []));
    await admin.listKeys(7, query as { all: boolean });
    expect(asked.map(({ path }) => path)).toEqual([`/api/networks/7/enrollment-keys${sent}`]);
  });

  test('of events has their id, their number, and 0 as well', async () => {
    const { admin, asked } = await connect(json(404, {}), json(200, []));
    await admin.readEvents(7, { after: 0, limit: 5 });
    expect(asked[0]?.path).toBe('/api/networks/7/events?after=0&limit=5');
  });
});

describe('a description', () => {
  test('is read once for all that is to be found in it', async () => {
    const { admin, described } = await connect(json(200, removals), json(200, { pending: [] }));
    expect(await admin.describes('network-health')).toBe(false);
    expect(await Promise.all([admin.describes('network-removals'), admin.readRemovals(7, 0)])).toEqual([true, []]);
    expect(described()).toBe(1);
  });

  test.each([
    ['not there', json(404, {})],
    ['not for this user', json(401, {})],
    ['no JSON', bytes(200, 'none', { 'content-type': 'text/plain' })],
    ['no description', json(200, [])],
  ])('that is %s describes nothing', async (_, description) => {
    const { admin } = await connect(description);
    expect([await admin.describes('network-removals'), await admin.readHealth(7)]).toEqual([false, null]);
  });

  test.each([
    ['is not sent', json(503, {})],
    ['breaks off', brokenOff],
  ])('that %s says nothing of what there is', async (_, description) => {
    const { admin } = await connect(description);
    expect((await failureOf(admin.readHealth(7))).name).toBe('Unreachable');
  });
});

describe('hosts that have not applied a removal', () => {
  test.each([
    [10, 'wait=10'],
    [0, undefined],
  ])('are waited for, for %i seconds', async (seconds, prefer) => {
    const { admin, asked } = await connect(json(200, removals), json(200, { pending: [] }));
    expect(await admin.readRemovals(7, seconds)).toEqual([]);
    expect(asked.at(-1)?.headers.prefer).toBe(prefer);
  });
});

describe('the audit', () => {
  const subject = { kind: 'user', id: 1, name: 'a' };
  const entry = (id: number) => ({ id, at, actor: subject, action: 'x', target: subject, address: null, details: {} });

  test('has no more entries than the limit, of a service that ignores it too', async () => {
    const { admin, asked } = await connect(json(404, {}), json(200, [entry(3), entry(2), entry(1)]));
    expect((await admin.readAudit({ limit: 2 })).map(({ id }) => id)).toEqual([3, 2]);
    expect(asked).toHaveLength(1);
  });

  test.each([
    [200, 1],
    [201, 2],
    [400, 2],
  ])('up to %i entries is read in %i pages', async (limit, pages) => {
    const page: Reply = (response, request) => {
      const query = new URL(request.path, 'http://x').searchParams;
      const before = Number(query.get('before') ?? 1001);
      const entries = Array.from({ length: Number(query.get('limit')) }, (_, index) => entry(before - 1 - index));
      json(200, entries)(response, request);
    };
    const { admin, asked } = await connect(json(404, {}), page);
    expect(new Set((await admin.readAudit({ limit })).map(({ id }) => id)).size).toBe(limit);
    expect(asked).toHaveLength(pages);
  });
});

describe('a login that is refused', () => {
  test.each<[string | undefined, string]>([
    [undefined, 'check the email and the password'],
    ['wrong', 'check the email and the password'],
    ['a robot did this', 'check the email and the password'],
    ...['Two-factor', '2FA', 'second factor', 'one-time code', 'an OTP', 'MFA'].map((word) => {
      return [`${word} is required`, 'make a personal token and give --token-file'] as [string, string];
    }),
  ])('with %j says: %s', async (message, remedy) => {
    const { admin } = await connect(json(404, {}), json(401, { message }));
    const failure = await failureOf(admin.login('a@example.net', new Secret('pw'), 'laptop'));
    expect(failure.message).toContain(remedy);
  });

  test('does not show the password, should the service repeat it', async () => {
    const { admin } = await connect(json(404, {}), json(403, { message: 'no password-canary-1' }));
    const failure = await failureOf(admin.login('a@example.net', new Secret('password-canary-1'), 'laptop'));
    expect(failure.message).not.toContain('canary');
  });
});

describe('rules', () => {
  const rules = { mode: 'open', rules: [], tests: [], require_enforcement: false, enforcement: [], warnings: [] };

  test('are read with their ETag, with which they are replaced', async () => {
    const { admin, asked } = await connect(json(404, {}), json(200, { data: rules }, { etag: '"r-5"' }));
    expect(await admin.readRules(7)).toEqual({ rules, etag: '"r-5"' });
    expect(
      await admin.setRules(7, { mode: 'closed', rules: [], tests: [], require_enforcement: false }, '"r-5"'),
    ).toEqual(rules);
    expect(asked[1]?.headers['if-match']).toBe('"r-5"');
    const { enforcement: _, warnings: __, ...sent } = rules;
    expect(JSON.parse(asked[1]?.body ?? '')).toEqual({ ...sent, mode: 'closed' });
  });

  test('that were not confirmed in time can be set again', async () => {
    const { admin } = await connect(json(404, {}), json(409, { message: 'too late' }));
    expect((await failureOf(admin.confirmRules(7))).message).toMatch(
      /\(409\): .*; to set them again, type: cpn rules apply FILE$/,
    );
  });

  test('of a service without ETags are replaced whatever they are', async () => {
    const { admin, asked } = await connect(json(404, {}), json(200, { data: rules }));
    const { etag } = await admin.readRules(7);
    expect(etag).toBeNull();
    await admin.setRules(7, { mode: 'open', rules: [], tests: [], require_enforcement: false }, etag);
    expect(asked[1]?.headers).not.toHaveProperty('if-match');
  });
});
