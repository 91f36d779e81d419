import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { closePlane, owner, withDatabase } from '../control-plane/harness.ts';
import { findBarriers, logIn, openConsole, openLoggedIn, openTab, seeHeading, takePicture } from './browser.ts';

let plane: Awaited<ReturnType<typeof openConsole>>;
beforeAll(async () => {
  plane = await openConsole();
});
afterAll(() => closePlane(plane));
beforeEach(() => withDatabase(plane.dataDir, (db) => db.deleteFrom('device_codes').execute()));

const root = '/api/auth/device-codes';
const start = async (fields: object = {}) =>
  (await plane.call('POST', root, { body: { device_name: 'cpn on <b>laptop</b>', ...fields } })).body.data;
const redeem = async (device_code: string, fields: object = {}) => {
  const { status, body } = await plane.call('POST', `${root}/token`, { body: { device_code, ...fields } });
  return [status, body.error];
};
const title = 'Log in on a device';

test('a login is approved after the own login, which returns to the page, by a click and not before', async () => {
  const { device_code, user_code, verification_uri_complete } = await start();
  const { page } = await openTab();
  await page.goto(verification_uri_complete);
  await logIn(page);
  await seeHeading(page, title);
  await page.getByText('cpn on <b>laptop</b>').waitFor();
  const text = await page.locator('main').textContent();
  for (const part of [
    user_code,
    '127.0.0.1',
    'the same as that of this browser',
    owner.email,
    'Approve only if you started',
  ])
    expect(text).toContain(part);
  expect(await findBarriers(page)).toEqual([]);
  await takePicture(page, 'device');
  expect(await redeem(device_code)).toEqual([400, 'authorization_pending']);
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByText('The login is approved.').waitFor();
  expect(await redeem(device_code)).toEqual([200, undefined]);
  await page.reload();
  await page.getByText(`The code ${user_code} is unknown, used or expired.`).waitFor();
});

test('a code is typed as it comes to hand, and the login refused', async () => {
  const { device_code, user_code } = await start();
  const page = await openLoggedIn(plane, '#/device');
  await page.getByLabel('Code').fill(user_code.replace('-', ' ').toLowerCase());
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText(user_code).waitFor();
  await page.getByRole('button', { name: 'Refuse' }).click();
  await page.getByText('The login is refused.').waitFor();
  expect(await redeem(device_code)).toEqual([400, 'access_denied']);
});

test('of a login of more than 5 minutes ago the password is asked', async () => {
  const { device_code, user_code } = await start();
  const page = await openLoggedIn(plane, `#/device/${user_code}`);
  await page.getByText(user_code).waitFor();
  await withDatabase(plane.dataDir, (db) =>
    db
      .updateTable('sessions')
      .set({ created_at: new Date(Date.now() - 6 * 60_000).toISOString() })
      .execute(),
  );
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByText('Your password is required').waitFor();
  await page.getByLabel('Your password').fill(owner.password);
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByText('The login is approved.').waitFor();
  expect(await redeem(device_code)).toEqual([200, undefined]);
});

test('a decision is brought to the port of this machine with the state of the link, which it needs', async () => {
  const requests: string[] = [];
  const listener = createServer(({ url = '', headers }, response) => {
    if (!url.startsWith('/favicon')) requests.push(url);
    expect(headers.referer).toBeUndefined();
    response.end('You can close this window.');
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void listener.closeAllConnections());
  onTestFinished(() => void listener.close());
  const { port: redirect_port } = listener.address() as AddressInfo;
  const code_verifier = randomBytes(32).toString('base64url');
  const code_challenge = createHash('sha256').update(code_verifier).digest('base64url');
  const state = randomBytes(32).toString('base64url');

  const { device_code, user_code } = await start({ code_challenge, redirect_port });
  const page = await openLoggedIn(plane, `#/device/${user_code}`);
  await page.getByText('Open the whole address').waitFor();
  expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
  await page.goto('about:blank');
  await page.goto(`${plane.url}/#/device/${user_code}?state=${state}`);
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByText('You can close this window.').waitFor();
  await expect.poll(() => requests).toHaveLength(1);
  const query = new URL(requests[0] ?? '', 'http://127.0.0.1').searchParams;
  expect(query.get('state')).toBe(state);
  expect(await redeem(device_code, { code: query.get('code'), code_verifier })).toEqual([200, undefined]);

  const other = await start({ code_challenge, redirect_port });
  await page.goto(`${plane.url}/#/device/${other.user_code}?state=${state}`);
  await page.getByRole('button', { name: 'Refuse' }).click();
  await expect.poll(() => requests[1]).toBe(`/?error=access_denied&state=${state}`);
});

test('no page frames it', async () => {
  const { user_code } = await start();
  const { headers } = await plane.call('GET', '/', { headers: { accept: 'text/html' } });
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  const page = await openLoggedIn(plane, '', {}, /frame-ancestors|Framing/);
  const framing = createServer((_, response) =>
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end(`<iframe src="${plane.url}/#/device/${user_code}"></iframe>`),
  );
  await new Promise<void>((resolve) => framing.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void framing.close());
  await page.goto(`http://127.0.0.1:${(framing.address() as AddressInfo).port}/`);
  await page.waitForTimeout(500);
  expect(await page.frames()[1]?.getByRole('button', { name: 'Approve' }).count()).toBe(0);
});
