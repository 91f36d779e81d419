import type { APIResponse, Page, Request, Route } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { closePlane, enroll, makeKey, makeNetwork } from '../control-plane/harness.ts';
import { goTo, logIn, openConsole, openLoggedIn, openTab, seeHeading } from './browser.ts';

let plane: Awaited<ReturnType<typeof openConsole>>;
let ranges = 0;
beforeAll(async () => {
  plane = await openConsole();
});
afterAll(() => closePlane(plane));

async function addNetwork(): Promise<number> {
  ranges += 1;
  return makeNetwork(plane, plane.token, { name: `net-${ranges}`, private_cidr: `10.${ranges}.0.0/16` });
}

async function addPeer(network: number, fields: object): Promise<number> {
  const reply = await enroll(plane, await makeKey(plane, plane.token, network), fields);
  expect(reply.status).toBe(201);
  return reply.body.data.peer.id;
}

/** A request of the page that the test keeps back, or its reply. */
interface Held {
  readonly route: Route;
  readonly reply: APIResponse | null;
}

/** Keeps back the requests that fit, or the replies that the control plane sends to them at once. */
async function hold(page: Page, fits: (request: Request) => boolean, what: 'requests' | 'replies' = 'replies') {
  const held: Held[] = [];
  let isOver = false;
  await page.route('**/api/**', async (route) => {
    if (isOver || !fits(route.request())) return route.fallback();
    held.push({ route, reply: what === 'replies' ? await route.fetch() : null });
  });
  return {
    count: () => held.length,
    /** From now on requests pass. */
    stop: () => {
      isOver = true;
    },
    /** Gives the page a reply, and returns its status once the page has handled it. */
    async release(at = 0): Promise<number> {
      const { route, reply } = held[at] ?? expect.unreachable();
      const response = reply ?? (await route.fetch());
      await route.fulfill({ response });
      await (await route.request().response())?.finished();
      // Two frames: one to render what the reply changed.
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
      return response.status();
    },
  };
}

const isGet = (path: RegExp) => (request: Request) => request.method() === 'GET' && path.test(request.url());
const isChange = (path: RegExp) => (request: Request) => request.method() !== 'GET' && path.test(request.url());

test('an older reply that comes late does not overwrite a newer list', async () => {
  const network = await addNetwork();
  const gone = await addPeer(network, { name: 'gone' });
  await addPeer(network, { name: 'stays' });
  const page = await openLoggedIn(plane, `#/networks/${network}/peers`);
  await page.getByText('2 of 2 peers').waitFor();
  const held = await hold(page, isGet(/suspended=true/));
  const path = `/api/networks/${network}/peers/${gone}`;
  await plane.call('PATCH', path, { token: plane.token, body: { suspended: true } });
  await expect.poll(held.count).toBe(1);
  await plane.call('DELETE', path, { token: plane.token });
  await expect.poll(held.count).toBe(2);
  await held.release(1);
  await page.getByText('1 of 1 peers').waitFor();
  await held.release(0);
  expect(await page.getByText('1 of 1 peers').count()).toBe(1);
});

test('a logout while a request runs ends nothing else, and the next login shows no earlier session', async () => {
  const network = await addNetwork();
  const page = await openLoggedIn(plane, `#/networks/${network}/keys`);
  await seeHeading(page, `net-${ranges}: enrolment keys`);
  const held = await hold(page, isGet(/\/api\/users/), 'requests');
  await page.getByRole('link', { name: 'Users' }).click();
  await expect.poll(held.count).toBe(1);
  await page.getByRole('button', { name: 'Log out' }).click();
  await seeHeading(page, 'Log in to cpn');
  expect(await held.release()).toBe(401);
  expect(await page.getByText('Your session ended.').count()).toBe(0);
  held.stop();
  await logIn(page);
  await seeHeading(page, 'Users');
});

test('a reply to an earlier session does not end the one that began meanwhile in another window', async () => {
  const page = await openLoggedIn(plane);
  await seeHeading(page, 'Networks');
  const other = await page.context().newPage();
  await other.goto(plane.url);
  await seeHeading(other, 'Networks');
  const held = await hold(other, isGet(/\/api\/auth\/me$/));
  await page.getByRole('button', { name: 'Log out' }).click();
  await expect.poll(held.count).toBe(1);
  await logIn(page);
  await seeHeading(page, 'Networks');
  await expect.poll(held.count).toBe(2);
  await held.release(1);
  await seeHeading(other, 'Networks');
  held.stop();
  await held.release(0);
  expect(await other.getByRole('heading', { level: 1 }).textContent()).toBe('Networks');
});

test('a change of an ended session is not made by the user who logged in meanwhile', async () => {
  const network = await addNetwork();
  const id = await addPeer(network, { name: 'web-1' });
  const next = { email: 'next@example.net', password: 'a long enough password' };
  await plane.call('POST', '/api/users', { token: plane.token, body: { ...next, role: 'owner' } });
  const { page } = await openTab();
  await page.goto(`${plane.url}/#/networks/${network}/peers`);
  await logIn(page);
  await page.getByText('1 of 1 peers').waitFor();
  const held = await hold(page, isChange(/\/peers\/\d+$/), 'requests');
  await page.getByRole('button', { name: 'Change web-1' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('by-owner');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await expect.poll(held.count).toBe(1);
  const other = await page.context().newPage();
  await other.goto(plane.url);
  await other.getByRole('button', { name: 'Log out' }).click();
  await logIn(other, next);
  await seeHeading(other, 'Networks');
  await page.getByText(next.email).waitFor();
  expect(await held.release()).toBe(401);
  const { body } = await plane.call('GET', `/api/networks/${network}/peers/${id}`, { token: plane.token });
  expect([body.data.name, held.count()]).toEqual(['web-1', 1]);
  // Nor does it end the session of that user.
  expect(await page.getByText(next.email).count()).toBe(1);
});

test('a page that is left stops a change of several peers, and takes the user nowhere when its reply comes', async () => {
  const network = await addNetwork();
  for (const name of ['web-1', 'web-2', 'web-3']) await addPeer(network, { name });
  const page = await openLoggedIn(plane, `#/networks/${network}/peers`);
  await page.getByText('3 of 3 peers').waitFor();
  await page.getByLabel('Select all').check();
  await page.getByRole('toolbar').getByRole('button', { name: 'Remove' }).click();
  const removals = await hold(page, isChange(/\/peers\/\d+$/));
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await expect.poll(removals.count).toBe(1);
  await goTo(page, '#/networks', 'Networks');
  await removals.release();
  await page.getByText('1 peer is removed.').waitFor();
  const { body } = await plane.call('GET', `/api/networks/${network}/peers`, { token: plane.token });
  expect([body.data.length, removals.count()]).toEqual([2, 1]);

  const creations = await hold(page, isChange(/\/api\/networks$/));
  await page.getByRole('button', { name: 'Create a network' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('late');
  await page.getByRole('dialog').getByLabel('Range').fill('10.250.0.0/24');
  await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
  await expect.poll(creations.count).toBe(1);
  await goTo(page, `#/networks/${network}/add-host`, /: add a host$/);
  await page.getByLabel('Name').fill('typed meanwhile');
  await creations.release();
  await page.getByText('The network late is created.').waitFor();
  expect(await page.getByLabel('Name').inputValue()).toBe('typed meanwhile');
});

test('the reply to a dialog that was closed closes no other dialog', async () => {
  const page = await openLoggedIn(plane, '#/users');
  await seeHeading(page, 'Users');
  const dialog = page.getByRole('dialog');
  const held = await hold(page, isChange(/\/api\/users$/));
  const open = async (email: string) => {
    await page.getByRole('button', { name: 'Create a user' }).click();
    await dialog.getByLabel('E-mail address').fill(email);
    await dialog.getByLabel('Password', { exact: true }).fill('a long enough password');
  };
  await open('first@example.net');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await expect.poll(held.count).toBe(1);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await open('second@example.net');
  await held.release();
  await page.getByText('first@example.net is created.').waitFor();
  expect(await dialog.getByLabel('E-mail address').inputValue()).toBe('second@example.net');
});

test('no key of a phone is lost where its page is left and another phone is enrolled meanwhile', async () => {
  const network = await addNetwork();
  await addPeer(network, { name: 'edge', peer_type: 'connector', endpoint: '203.0.113.1:51820' });
  const at = `#/networks/${network}/add-host`;
  const page = await openLoggedIn(plane, at);
  const held = await hold(page, isChange(/\/networks\/enroll$/));
  const enrollPhone = async (name: string) => {
    await page.getByLabel('What joins?').selectOption('phone');
    await page.getByLabel('Name').fill(name);
    await page.getByRole('button', { name: 'Enrol the phone' }).click();
  };
  await enrollPhone('phone-1');
  await expect.poll(held.count).toBe(1);
  // The browser prompts before it leaves the console, whose page alone has the key.
  expect(await page.evaluate(`!dispatchEvent(new Event('beforeunload', { cancelable: true }))`)).toBe(true);
  await goTo(page, '#/networks', 'Networks');
  await goTo(page, at, /: add a host$/);
  await enrollPhone('phone-2');
  await page.getByText(/^✕ Another phone is being enrolled/).waitFor();
  await held.release();
  await page.getByRole('heading', { name: /^phone-1 is a peer with / }).waitFor();
  expect(held.count()).toBe(1);
  const names = (await plane.call('GET', `/api/networks/${network}/peers`, { token: plane.token })).body.data;
  expect(names.map(({ name }: { name: string }) => name)).toEqual(['edge', 'phone-1']);
});
