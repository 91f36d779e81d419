import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { bytes, hungUp, json, type Reply } from '../api/server.ts';
import { type ConsoleClient, failureOf, loadModule, serveConsole, stubBrowser } from './browser-globals.ts';

let browser: ReturnType<typeof stubBrowser>;
let page: ConsoleClient;
beforeEach(async () => {
  vi.resetModules();
  browser = stubBrowser();
  page = await loadModule<ConsoleClient>('client');
});
afterEach(() => browser.close());

const keyName = 'cpn session /vpn/';

describe('an error', () => {
  test.each<[number, boolean, boolean]>([
    [0, true, true],
    [400, false, false],
    [401, false, false],
    [403, false, false],
    [404, false, false],
    [408, false, false],
    [409, false, false],
    [422, false, false],
    [429, false, false],
    [500, false, true],
    [502, true, true],
    [503, true, true],
    [504, true, true],
    [507, false, true],
  ])('with the status %i is an outage: %j, and leaves the outcome open: %j', (status, isOutage, isUnknown) => {
    const error = new page.ApiError(status, 'x');
    expect([page.isOutage(error), page.isOutcomeUnknown(error)]).toEqual([isOutage, isUnknown]);
  });

  test('that is none of a reply leaves the outcome open', () => {
    expect([page.isOutage(new Error('x')), page.isOutcomeUnknown(new Error('x'))]).toEqual([false, true]);
  });
});

describe('a request', () => {
  test('has its key and its body, and is not kept by the browser', async () => {
    const { asked } = await serveConsole(json(200, { data: 7 }));
    page.storeSessionKey('half');
    expect(await page.call('POST', 'api/x', { a: 1 })).toBe(7);
    await page.call('GET', 'api/y');
    expect(asked.map(({ method, path, body }) => `${method} ${path} ${body}`)).toEqual([
      'POST /vpn/api/x {"a":1}',
      'GET /vpn/api/y ',
    ]);
    expect(asked[0]?.headers).toMatchObject({ 'session-key': 'half', 'content-type': 'application/json' });
    expect(asked[1]?.headers).not.toHaveProperty('content-type');
    expect(asked[1]?.headers.accept).toBe('application/json');
  });

  test.each(['pointerdown', 'keydown', 'wheel', 'touchmove'])(
    'that reads without an input in the last minute is marked as no use of the session, until the next %s',
    async (input) => {
      const { asked } = await serveConsole(json(200, {}));
      vi.useFakeTimers({ toFake: ['Date'] });
      onTestFinished(() => void vi.useRealTimers());
      const later = (ms: number) => vi.setSystemTime(Date.now() + ms);
      (browser.listeners.get(input) as () => void)();
      later(60_000);
      await page.call('GET', 'api/x');
      later(1);
      await page.call('GET', 'api/x');
      await page.send('GET', 'api/x', { headers: { prefer: 'wait=45' } });
      await page.call('POST', 'api/x');
      (browser.listeners.get(input) as () => void)();
      await page.call('GET', 'api/x');
      expect(asked.map(({ headers }) => headers.prefer)).toEqual([
        undefined,
        'wait=0',
        'wait=45',
        undefined,
        undefined,
      ]);
    },
  );

  test('takes its cookie to its own origin alone, follows no redirect, and leaves nothing in a cache', async () => {
    const options: object[] = [];
    vi.stubGlobal('fetch', async (_: string, given: object) => {
      options.push(given);
      return new Response('{}');
    });
    for (const method of ['GET', 'POST']) await page.send(method, 'api/x', method === 'POST' ? { body: {} } : {});
    const careful = { credentials: 'same-origin', redirect: 'error', cache: 'no-store' };
    expect(options).toEqual([expect.objectContaining(careful), expect.objectContaining(careful)]);
  });

  test('has the key that another window stored, and none after it was removed', async () => {
    const { asked } = await serveConsole(json(200, {}));
    page.storeSessionKey('first');
    browser.stored.set(keyName, 'second');
    await page.call('GET', 'api/x');
    page.storeSessionKey(null);
    expect(browser.stored.size).toBe(0);
    await page.call('GET', 'api/x');
    expect(asked.map(({ headers }) => headers['session-key'])).toEqual(['second', undefined]);
  });

  test('has the key of this page where the browser stores none', async () => {
    const { asked } = await serveConsole(json(200, {}));
    browser.closeStorage();
    page.storeSessionKey('half');
    await page.call('GET', 'api/x');
    page.storeSessionKey(null);
    await page.call('GET', 'api/x');
    expect(asked.map(({ headers }) => headers['session-key'])).toEqual(['half', undefined]);
  });

  test.each<[string, Reply, object]>([
    [
      'a reason',
      json(422, { message: 'no such name', errors: { name: ['no'] } }),
      { message: 'No such name.', fields: { name: ['no'] } },
    ],
    ['no reason', json(500, {}), { message: 'The control plane answered with the status 500.', fields: {} }],
    ['a page', bytes(502, '<html>'), { status: 502, message: 'The control plane answered with the status 502.' }],
    [
      'no reply',
      hungUp,
      { status: 0, message: 'The control plane does not answer. Check the connection, then try again.' },
    ],
  ])('that fails with %s says so', async (_, reply, error) => {
    await serveConsole(reply);
    expect(await failureOf(page.call('GET', 'api/x'))).toMatchObject(error);
  });

  test('that succeeds ends an outage, a 304 as well, and one that fails does not', async () => {
    for (const [reply, isOver] of [
      [json(200, {}), true],
      [((response) => response.writeHead(304).end()) as Reply, true],
      [json(404, {}), false],
    ] as const) {
      await serveConsole(reply);
      page.isOutOfReach.value = true;
      await page.send('GET', 'api/x').catch(() => undefined);
      expect(page.isOutOfReach.value).toBe(!isOver);
    }
  });

  test('without a valid session ends it, but for the login', async () => {
    await serveConsole(json(401, {}));
    await failureOf(page.call('POST', 'api/auth/login', {}));
    expect(page.sessionsEnded.value).toBe(0);
    await failureOf(page.call('GET', 'api/x'));
    expect(page.sessionsEnded.value).toBe(1);
  });

  test.each<[string, string | null | undefined, number, number]>([
    ['GET', 'new', 2, 0],
    ['POST', 'new', 1, 0],
    ['DELETE', 'new', 1, 0],
    ['GET', undefined, 1, 1],
    // This page began a session without a key, or ended its own.
    ['GET', null, 1, 0],
  ])(
    '%s during which the page stores the key %j is sent %i times, and ends %i sessions',
    async (method, later, requests, ended) => {
      page.storeSessionKey('old');
      const refuse: Reply = (response, request) => {
        if (later !== undefined) page.storeSessionKey(later);
        json(401, {})(response, request);
      };
      const { asked } = await serveConsole(refuse, json(200, {}));
      const outcome = await page.send(method, 'api/x').then(
        () => 'done',
        (error: Error) => error.message,
      );
      expect([asked.length, page.sessionsEnded.value]).toEqual([requests, ended]);
      expect(outcome).toMatch(requests === 2 ? /^done$/ : later ? /Another session began/ : /status 401/);
    },
  );

  test('that its caller ends is no outage', async () => {
    const stop = new AbortController();
    await serveConsole(() => stop.abort());
    expect(await failureOf(page.send('GET', 'api/x', { signal: stop.signal }))).toMatchObject({ name: 'AbortError' });
  });

  test('for a list is made for each of its pages, below the same path', async () => {
    const { asked } = await serveConsole(
      json(200, { data: [1, 2], links: { next: '?page=2' } }),
      json(200, { data: [3], links: { next: '?page=3' } }),
      json(200, { data: [], links: { next: null } }),
    );
    expect(await page.readList('api/x?suspended=true')).toEqual([1, 2, 3]);
    expect(asked.map(({ path }) => path)).toEqual([
      '/vpn/api/x?suspended=true',
      '/vpn/api/x?page=2',
      '/vpn/api/x?page=3',
    ]);
    await serveConsole(json(200, { data: [7] }));
    expect(await page.readList('api/y')).toEqual([7]);
  });
});
