import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { loadModule, type Sessions, stubBrowser } from './browser-globals.ts';
import { holdRequests, pass, settle, stubWindows } from './page.ts';

interface Waits {
  takeTurn(path: string): Promise<(() => Promise<void>) | null>;
  announceChange(path: string): void;
  watchChanges(path: string, stopped: AbortSignal): { next(ms: number): Promise<void> };
}

let browser: ReturnType<typeof stubBrowser>;
let windows: ReturnType<typeof stubWindows>;
let waits: Waits;
beforeEach(async () => {
  vi.resetModules();
  browser = stubBrowser();
  windows = stubWindows();
  waits = await loadModule<Waits>('shared-waits');
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  browser.close();
});

describe('the right to wait', () => {
  test('is for one window per resource, and for three resources of an origin', async () => {
    const first = await waits.takeTurn('a');
    expect(await waits.takeTurn('a')).toBeNull();
    const others = [await waits.takeTurn('b'), await waits.takeTurn('c')];
    expect(others).toEqual([expect.any(Function), expect.any(Function)]);
    expect(await waits.takeTurn('d')).toBeNull();
    await first?.();
    expect([...windows.held].toSorted()).toEqual([
      ...['cpn wait /vpn/b', 'cpn wait /vpn/c'],
      ...['cpn wait 1', 'cpn wait 2'],
    ]);
    expect(await waits.takeTurn('d')).toEqual(expect.any(Function));
  });

  test('is not that of another path of the origin, which has other resources', async () => {
    windows.held.add('cpn wait /other/a');
    expect(await waits.takeTurn('a')).toEqual(expect.any(Function));
  });

  test.each([
    ['without locks', {}],
    ['without storage', { locks: { request: () => Promise.reject(new Error('no storage')) } }],
  ])('is none %s', async (_, navigator) => {
    vi.stubGlobal('navigator', navigator);
    expect(await waits.takeTurn('a')).toBeNull();
  });
});

describe('the changes of a resource', () => {
  /** Whether the next change has come. */
  function awaitNext(changes: ReturnType<Waits['watchChanges']>, ms = 5000) {
    const state = { isOver: false };
    void changes.next(ms).then(() => {
      state.isOver = true;
    });
    return state;
  }

  test('are those that another window announces, not those of other resources', async () => {
    const other = windows.open('cpn changes /vpn/');
    const stop = new AbortController();
    const changes = waits.watchChanges('a', stop.signal);
    const next = awaitNext(changes);
    other.say('b');
    await settle();
    expect(next.isOver).toBe(false);
    other.say('a');
    await settle();
    expect([next.isOver, vi.getTimerCount()]).toEqual([true, 0]);
    waits.announceChange('a');
    expect(other.heard).toEqual(['a']);
  });

  test('are none after a while, and one that came meanwhile counts once', async () => {
    const other = windows.open('cpn changes /vpn/');
    const changes = waits.watchChanges('a', new AbortController().signal);
    const first = awaitNext(changes);
    await pass(4999);
    expect(first.isOver).toBe(false);
    await pass(1);
    expect(first.isOver).toBe(true);
    other.say('a');
    const second = awaitNext(changes);
    await settle();
    expect(second.isOver).toBe(true);
    const third = awaitNext(changes);
    await settle();
    expect(third.isOver).toBe(false);
  });

  test('are followed no longer than their resource', async () => {
    const other = windows.open('cpn changes /vpn/');
    const stop = new AbortController();
    const changes = waits.watchChanges('a', stop.signal);
    const next = awaitNext(changes);
    stop.abort();
    await settle();
    expect([next.isOver, vi.getTimerCount()]).toEqual([true, 0]);
    expect(awaitNext(changes)).toEqual({ isOver: false });
    await settle();
    other.say('a');
    expect(vi.getTimerCount()).toBe(0);
  });
});

test('an announcement is shown for six seconds, and the next one for as long', async () => {
  const { announce, announcement } = await loadModule<{
    announce(text: string): void;
    announcement: { value: string };
  }>('announcer');
  announce('first');
  await pass(4000);
  announce('second');
  await pass(5999);
  expect(announcement.value).toBe('second');
  await pass(1);
  expect(announcement.value).toBe('');
});

describe('the address of a page', () => {
  interface Router {
    route: { value: object };
    query: { value: object };
    go(to: object): void;
    setQuery(query: object): void;
  }

  test('has the route and the view, also after Back', async () => {
    const { location } = globalThis as unknown as { location: { hash: string } };
    const router = await loadModule<Router>('router');
    expect([router.route.value, router.query.value]).toEqual([{ page: 'networks' }, {}]);
    location.hash = '#/networks/7/peers?q=web';
    (browser.listeners.get('hashchange') as () => void)();
    expect([router.route.value, router.query.value]).toEqual([{ page: 'peers', network: 7 }, { q: 'web' }]);
    router.go({ page: 'keys', network: 7 });
    expect(location.hash).toBe('#/networks/7/keys');
  });

  test('has another view without a further entry in the history', async () => {
    const entries: unknown[] = [];
    const replaceState = (...entry: unknown[]) => void entries.push(entry);
    vi.stubGlobal('history', { replaceState, pushState: () => expect.unreachable() });
    const router = await loadModule<Router>('router');
    router.setQuery({ q: 'web', type: '' });
    expect([router.query.value, entries]).toEqual([{ q: 'web', type: '' }, [[null, '', '#/networks?q=web']]]);
  });
});

describe('the session of several windows', () => {
  const open = async () => {
    const requests = holdRequests();
    const other = windows.open('cpn session /vpn/');
    return { requests, other, session: await loadModule<Sessions>('session') };
  };
  const owner = { role: 'owner' };
  const viewer = { role: 'viewer' };

  test('is read again once another window says that it changed', async () => {
    const { requests, other, session } = await open();
    other.say(null);
    await requests[0]?.answer(200, owner);
    expect(session.profile.value).toEqual(owner);
    other.say(null);
    await requests[1]?.answer(401);
    expect(session.profile.value).toBeNull();
  });

  test('changes for the others with a login, another password and a logout, once it has changed here', async () => {
    const { requests, other, session } = await open();
    const steps: [() => Promise<unknown>, object, number][] = [
      [() => session.logIn('me@example.net', 'pw'), { session_key: 'half' }, 2],
      [() => session.changePassword({}), { session_key: 'new' }, 1],
      [() => session.logOut(), {}, 1],
    ];
    for (const [at, [change, reply, count]] of steps.entries()) {
      const before = requests.length;
      const done = change();
      await settle();
      expect(other.heard).toHaveLength(at);
      await requests[before]?.answer(200, reply);
      if (count === 2) await requests[before + 1]?.answer(200, owner);
      await done;
      expect([other.heard.length, requests.length]).toEqual([at + 1, before + count]);
    }
    expect([session.profile.value, session.hasEnded.value]).toEqual([null, false]);
  });

  test('is that of the login, not of a reply to an earlier request', async () => {
    const { requests, session } = await open();
    const early = session.openSession();
    const login = session.logIn('me@example.net', 'pw');
    await requests[1]?.answer(200, { session_key: 'half' });
    await requests[2]?.answer(200, owner);
    await login;
    await requests[0]?.answer(200, viewer);
    await early;
    expect(session.profile.value).toEqual(owner);
  });

  test.each([
    ['a failure', 500, { session_key: 'half' }],
    ['a refusal', 401, { session_key: 'half' }],
    ['a failure, where sessions have no key,', 500, {}],
    ['a refusal, where sessions have no key,', 401, {}],
  ])('is that of the login after %s of an earlier request', async (_, status, begun) => {
    const { requests, session } = await open();
    const early = session.openSession();
    const login = session.logIn('me@example.net', 'pw');
    await requests[1]?.answer(200, begun);
    await requests[2]?.answer(200, owner);
    await login;
    await requests[0]?.answer(status, null);
    // A session with a key sends it once more.
    await requests[3]?.answer(200, owner);
    await early;
    const { profile, hasEnded, startProblem } = session;
    expect([profile.value, hasEnded.value, startProblem.value]).toEqual([owner, false, null]);
  });

  test.each([
    ['a logout', (session: Sessions) => session.logOut(), null],
    ['a later reading', (session: Sessions) => session.openSession(), owner],
  ])('is what %s left, whatever fails of an earlier request', async (_, change, expected) => {
    const { requests, session } = await open();
    const early = session.openSession();
    const changed = change(session);
    await requests[1]?.answer(200, expected);
    await changed;
    await requests[0]?.answer(500, null);
    await early;
    const { profile, hasEnded, startProblem } = session;
    expect([profile.value, hasEnded.value, startProblem.value]).toEqual([expected, false, null]);
  });

  test('is over after a logout, whatever an earlier request brings', async () => {
    const { requests, session } = await open();
    const early = session.openSession();
    const logout = session.logOut();
    await requests[1]?.answer(200, null);
    await logout;
    await requests[0]?.answer(200, viewer);
    await early;
    expect([session.profile.value, session.hasEnded.value]).toEqual([null, false]);
  });

  test('is read again after another password, where a request was refused meanwhile', async () => {
    const { requests, session } = await open();
    const first = session.openSession();
    await requests[0]?.answer(200, owner);
    await first;
    const change = session.changePassword({});
    const late = session.openSession();
    await requests[2]?.answer(401);
    await late;
    expect(session.profile.value).toBeNull();
    await requests[1]?.answer(200, { session_key: 'new' });
    await requests[3]?.answer(200, owner);
    await change;
    expect([session.profile.value, session.hasEnded.value]).toEqual([owner, false]);
  });
});
