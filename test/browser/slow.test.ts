import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { withDatabase } from '../control-plane/databases.ts';
import { closePlane, enroll, makeKey, makeNetwork, owner } from '../control-plane/harness.ts';
import { findBarriers, openConsole, openLoggedIn, seeHeading, takePicture, untilRead } from './browser.ts';
import { officeRoute, populate } from './populate.ts';

/** How long each request of the console takes. `CPN_DELAY_MS=4000 scripts/test browser/slow` shows a really slow control plane. */
const delayMs = Number(process.env.CPN_DELAY_MS ?? 150);

let plane: Awaited<ReturnType<typeof openConsole>>;
beforeAll(async () => {
  plane = await openConsole();
});
afterAll(() => closePlane(plane));

interface SlowPlane {
  readonly url: string;
  /** The requests that change something. */
  readonly changes: string[];
  /** Lets the requests through that change something; until then they wait. */
  release(): void;
}

/** A proxy that forwards each request of the API after a while. */
async function delay(): Promise<SlowPlane> {
  const changes: string[] = [];
  let held: (() => void)[] = [];
  const proxy = createServer((asked, reply) => {
    const { method = 'GET', headers, url = '/' } = asked;
    if (method !== 'GET') changes.push(`${method} ${url.replace(/\d+/g, 'N')}`);
    const pass = () => {
      const sent = forward(plane.url + url, { method, headers }, (answer) => {
        reply.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(reply);
      });
      sent.on('error', () => reply.destroy());
      reply.on('close', () => sent.destroy());
      asked.pipe(sent);
    };
    const wait = () => setTimeout(pass, url.startsWith('/api/') ? delayMs : 0);
    if (method === 'GET') wait();
    else held.push(wait);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const release = () => {
    for (const wait of held) wait();
    held = [];
  };
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, changes, release };
}

/** Notes the pages that showed that they load, and each text that states something: nothing of it may change once all is read. */
const observe = `
  globalThis.loads = [];
  globalThis.shown = new Set();
  globalThis.read = () => [...document.querySelectorAll('.empty, main p.problem, main td, main .lead, main .panel h2')]
    .filter((place) => place.querySelector('time, .waiting, .spark') === null)
    .map(({ textContent }) => textContent);
  new MutationObserver(() => {
    if (document.querySelector('main .loading')) loads.push(location.hash);
    for (const text of read()) shown.add(text);
  }).observe(document, { subtree: true, childList: true, characterData: true });`;

async function makeSite(range: string, count: number) {
  const network = await makeNetwork(plane, plane.token, {
    name: `site-${count}`,
    private_cidr: range,
    routes: [officeRoute],
  });
  const peers = await withDatabase(plane.dataDir, (db) => populate(db, network, count));
  await makeKey(plane, plane.token, network, { name: 'spare', max_uses: 3 });
  return { network, peers };
}

test('on a slow control plane each page shows that it loads, and claims nothing before it is read', async () => {
  // Two connectors and an origin, all of them online.
  const { network, peers } = await makeSite('10.1.0.0/16', 3);
  const path = `/api/networks/${network}/peers/${peers[2]?.id}`;
  await plane.call('PATCH', path, { token: plane.token, body: { suspended: true } });
  const { url } = await delay();
  const page = await openLoggedIn({ url, call: plane.call });
  await page.addInitScript(observe);
  await seeHeading(page, 'Networks');
  const at = `#/networks/${network}`;
  const places = ['#/networks', at, `${at}/peers`, `${at}/events`, `${at}/keys`, `${at}/add-host`];
  for (const peer of [peers[0], peers[2]]) places.push(`${at}/peer/${peer?.id}`);
  for (const place of [...places, '#/audit', '#/users', '#/account']) {
    // Each page is the first one, so that nothing of it is there already.
    await page.goto('about:blank');
    await page.goto(`${url}/${place}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await untilRead(page);
    const [loads, gone] = await page.evaluate<string[][]>(
      '[loads, [...shown].filter((text) => !read().includes(text))]',
    );
    expect([place, loads?.includes(place), gone]).toEqual([place, true, []]);
  }
});

test('on a slow control plane each button is busy once it is pressed, and a second click sends nothing', async () => {
  const { network } = await makeSite('10.2.0.0/16', 8);
  const { url, changes, release } = await delay();
  const page = await openLoggedIn({ url, call: plane.call });
  await seeHeading(page, 'Networks');
  const dialog = page.getByRole('dialog');
  /** Presses a button twice, and waits until what it did is shown. */
  const press = async (name: string, expected: readonly string[], within: Pick<Page, 'getByRole'> = dialog) => {
    changes.length = 0;
    const button = within.getByRole('button', { name });
    await button.dblclick();
    await expect.poll(() => changes.length).toBe(1);
    expect([name, await button.getAttribute('aria-disabled')]).toEqual([name, 'true']);
    await button.click({ force: true });
    if (name === 'Save') expect(await findBarriers(page)).toEqual([]);
    release();
    await expect.poll(() => page.locator('[aria-disabled="true"]').count()).toBe(0);
    expect([name, changes]).toEqual([name, expected]);
  };
  const at = `#/networks/${network}`;
  const open = async (hash: string, button?: string) => {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    if (button !== undefined) await page.getByRole('button', { name: button, exact: true }).first().click();
  };
  await open('#/networks', 'Create a network');
  await dialog.getByLabel('Name').fill('slow');
  await dialog.getByLabel('Range').fill('10.3.0.0/24');
  await press('Create', ['POST /api/networks']);
  await open(at, 'Change the network');
  await dialog.getByLabel('Description').fill('slow');
  await press('Save', ['PATCH /api/networks/N']);
  await open(`${at}/peers`, 'Change edge-1');
  await dialog.getByLabel('Priority').fill('3');
  await press('Save', ['PATCH /api/networks/N/peers/N']);
  await page.getByLabel('Select edge-2').check();
  await page.getByRole('toolbar').getByRole('button', { name: 'Suspend' }).click();
  await press('Suspend', ['PATCH /api/networks/N/peers/N']);
  await open(`${at}/add-host`);
  await page.getByLabel('Name').fill('web-1');
  await press('Make a key', ['POST /api/networks/N/enrollment-keys'], page);
  await open(`${at}/keys`, 'Revoke spare');
  await press('Revoke', ['DELETE /api/networks/N/enrollment-keys/N']);
  // The list is as it is now when the dialog closes.
  expect(await page.getByRole('button', { name: 'Revoke spare' }).count()).toBe(0);
  await plane.call('POST', '/api/auth/login', { body: { ...owner, device_name: 'other' } });
  const user = { email: 'slow@example.net', password: 'a password of twelve or more' };
  await open('#/users', 'Create a user');
  await dialog.getByLabel('E-mail address').fill(user.email);
  await dialog.getByLabel('Password', { exact: true }).fill(user.password);
  await press('Create', ['POST /api/users']);
  await open('#/users', `End sessions of ${user.email}`);
  await press('End', ['DELETE /api/users/N/sessions']);
  await open('#/users', `Remove ${user.email}`);
  await press('Remove', ['DELETE /api/users/N']);
  await open('#/account');
  await page.getByLabel('Name').fill('deploy');
  await press('Make a token', ['POST /api/auth/tokens'], page);
  await open('#/account', 'Revoke deploy');
  await press('Revoke', ['DELETE /api/auth/tokens/N']);
  await press('End the session other', ['DELETE /api/auth/sessions/N'], page);
  await open('#/audit');
  await untilRead(page);
  await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export as CSV' }).dblclick()]);
  await press('Log out', ['POST /api/auth/logout'], page);
  await seeHeading(page, 'Log in to cpn');
});

test('of 300 peers some are selected, and a failure is named, without a barrier in either colour', async () => {
  const { network } = await makeSite('10.4.0.0/16', 300);
  const page = await openLoggedIn(plane, `#/networks/${network}/peers`, { viewport: { width: 1280, height: 900 } });
  await page.getByText('300 of 300 peers').waitFor();
  const check = async (name: string) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect([name, colorScheme, await findBarriers(page)]).toEqual([name, colorScheme, []]);
    }
    await takePicture(page, name);
  };
  const boxes = page.getByRole('checkbox', { name: /^Select (?!all )/ });
  for (const box of [boxes.nth(0), boxes.nth(2)]) await box.check();
  await check('state-selected');
  const failing = `**/api/networks/${network}/peers/*`;
  await page.route(failing, (route) => route.fulfill({ status: 409, json: { message: 'the peer is locked' } }));
  await page.getByRole('toolbar').getByRole('button', { name: 'Set the expiry' }).click();
  await page.getByRole('dialog').getByLabel('Days until they expire').fill('30');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByText(/^✕ 2 peers stayed as before\. .*: The peer is locked\.$/).waitFor();
  await check('state-failed');
});

test('a key shows exact times with their zone in place of relative ones, dialogs included, and the choice is kept', async () => {
  const network = await makeNetwork(plane, plane.token, { name: 'times', private_cidr: '10.5.0.0/16' });
  const { body } = await enroll(plane, await makeKey(plane, plane.token, network), { name: '北京-web' });
  const { id } = body.data.peer;
  const expiry = { expires_at: new Date(Date.now() + 30 * 86_400_000).toISOString() };
  await plane.call('PATCH', `/api/networks/${network}/peers/${id}`, { token: plane.token, body: expiry });
  const page = await openLoggedIn(plane, `#/networks/${network}/peers`);
  const times = async () => (await page.locator('time').allTextContents()).map((text) => / UTC$/.test(text));
  await page.getByText('(beijing-web) expires in').waitFor();
  expect(await times()).toEqual([false]);
  expect(await page.locator('time').first().getAttribute('title')).toMatch(/^\d+ \w+ \d{4}, [\d:]{8} UTC$/);
  const button = page.getByRole('button', { name: 'Exact times' });
  await button.focus();
  await page.keyboard.press('Enter');
  expect(await button.getAttribute('aria-pressed')).toBe('true');
  expect(await times()).toEqual([true]);
  await page.getByRole('button', { name: 'Change 北京-web' }).click();
  await page.getByRole('dialog').getByText('At present it expires').waitFor();
  expect(await times()).toEqual([true, true]);
  expect(await findBarriers(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.reload();
  await page.getByRole('link', { name: '北京-web' }).click();
  await page.getByRole('heading', { name: '北京-web (beijing-web)' }).waitFor();
  await untilRead(page);
  expect(new Set(await times())).toEqual(new Set([true]));
  await button.click();
  expect(await times()).not.toContain(true);
});
