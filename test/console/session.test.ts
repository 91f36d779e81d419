import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { hungUp, json } from '../api/server.ts';
import {
  type ConsoleClient,
  failureOf,
  loadModule,
  type Sessions,
  serveConsole,
  stubBrowser,
} from './browser-globals.ts';

let browser: ReturnType<typeof stubBrowser>;
let page: ConsoleClient;
beforeEach(async () => {
  vi.resetModules();
  browser = stubBrowser();
  page = await loadModule<ConsoleClient>('client');
});
afterEach(() => browser.close());

const keyName = 'cpn session /vpn/';

describe('the session', () => {
  const me = (role: string) =>
    json(200, { data: { id: 1, email: 'me@example.net', role, organization: { id: 1, name: 'o' } } });

  test.each([
    ['viewer', false, false, false],
    ['member', true, false, false],
    ['admin', true, true, false],
    ['owner', true, true, true],
    ['later', false, false, false],
  ])('of a %s may edit: %j, administer: %j, and is an owner: %j', async (role, edits, administers, owns) => {
    const session = await loadModule<Sessions>('session');
    await serveConsole(me(role));
    expect([session.canEdit(), session.canAdminister(), session.isOwner()]).toEqual([false, false, false]);
    await session.openSession();
    expect([session.canEdit(), session.canAdminister(), session.isOwner()]).toEqual([edits, administers, owns]);
  });

  test.each([
    [[1], true],
    [[], true],
    [null, false],
    [undefined, false],
  ])('with the networks %j is limited: %j', async (networks, isLimited) => {
    const session = await loadModule<Sessions>('session');
    const organization = { id: 1, name: 'o' };
    await serveConsole(json(200, { data: { id: 1, email: 'me@example.net', role: 'admin', organization, networks } }));
    expect(session.isLimited()).toBe(false);
    await session.openSession();
    expect(session.isLimited()).toBe(isLimited);
  });

  test('is none after a 401, and unknown after any other failure', async () => {
    const session = await loadModule<Sessions>('session');
    await serveConsole(json(500, { message: 'no' }), json(401, {}), me('owner'), hungUp);
    await session.openSession();
    expect([session.profile.value, session.startProblem.value]).toEqual([undefined, 'No.']);
    await session.openSession();
    expect([session.profile.value, session.startProblem.value, session.hasEnded.value]).toEqual([null, null, false]);
    await session.openSession();
    expect([session.profile.value?.role, session.startProblem.value]).toEqual(['owner', null]);
    await session.openSession();
    expect([session.profile.value?.role, session.startProblem.value]).toEqual([
      'owner',
      expect.stringContaining('does not answer'),
    ]);
  });

  test('that a reply without one ends says so, and one that its user ends does not', async () => {
    const session = await loadModule<Sessions>('session');
    await serveConsole(
      me('owner'),
      json(401, {}),
      json(200, { data: { session_key: 'half' } }),
      me('admin'),
      json(200, { data: null }),
    );
    await session.openSession();
    await failureOf(page.call('GET', 'api/x'));
    expect([session.profile.value, session.hasEnded.value]).toEqual([null, true]);
    await session.logIn('me@example.net', 'pw');
    expect([session.profile.value?.role, session.hasEnded.value, browser.stored.get(keyName)]).toEqual([
      'admin',
      false,
      'half',
    ]);
    await session.logOut();
    expect([session.profile.value, session.hasEnded.value, browser.stored.has(keyName)]).toEqual([null, false, false]);
  });

  test('of a user with a second factor begins with the second step, whose refusal ends no session', async () => {
    const session = await loadModule<Sessions>('session');
    const second_factor = { challenge: 'cpc_1', kinds: ['totp'] };
    await serveConsole(
      json(200, { data: { second_factor } }),
      json(401, { message: 'the code is wrong' }),
      json(200, { data: { session_key: 'half' } }),
      me('owner'),
    );
    const step = await session.logIn('me@example.net', 'pw');
    expect([step, session.profile.value, browser.stored.has(keyName)]).toEqual([second_factor, undefined, false]);
    const pass = (code: string) => session.passSecondStep(second_factor, { code });
    expect(await failureOf(pass('1'))).toMatchObject({ message: 'The code is wrong.' });
    expect([session.hasEnded.value, page.sessionsEnded.value]).toEqual([false, 0]);
    await pass('2');
    expect([session.profile.value?.role, browser.stored.get(keyName)]).toEqual(['owner', 'half']);
  });

  test.each([
    [{ session_key: 'new' }, 'new'],
    [{}, 'old'],
  ])('after a new password has the key of %j', async (data, stored) => {
    const session = await loadModule<Sessions>('session');
    const { asked } = await serveConsole(me('owner'), json(200, { data }));
    await session.openSession();
    page.storeSessionKey('old');
    await session.changePassword({ current_password: 'a', new_password: 'b' });
    expect(browser.stored.get(keyName)).toBe(stored);
    expect([asked.length, JSON.parse(asked[1]?.body ?? '')]).toEqual([
      2,
      { current_password: 'a', new_password: 'b', session_cookie: '/vpn/' },
    ]);
  });

  test('of an earlier control plane has no key, and none of the one before', async () => {
    const session = await loadModule<Sessions>('session');
    page.storeSessionKey('old');
    await serveConsole(json(200, { data: {} }), me('owner'));
    await session.logIn('me@example.net', 'pw');
    expect(browser.stored.has(keyName)).toBe(false);
  });

  test('is that of the later of two reads, whichever reply comes first', async () => {
    const session = await loadModule<Sessions>('session');
    let answerFirst = () => {};
    await serveConsole((...given) => {
      answerFirst = () => me('viewer')(...given);
    }, me('owner'));
    const first = session.openSession();
    await expect.poll(() => answerFirst.length).toBe(0);
    await session.openSession();
    answerFirst();
    await first;
    expect(session.profile.value?.role).toBe('owner');
  });
});
