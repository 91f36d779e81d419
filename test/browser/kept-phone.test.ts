import { afterAll, beforeAll, expect, test } from 'vitest';
import { closePlane, enroll, makeKey, makeNetwork } from '../control-plane/harness.ts';
import { findBarriers, goTo, logIn, openConsole, openLoggedIn, seeHeading } from './browser.ts';

let plane: Awaited<ReturnType<typeof openConsole>>;
beforeAll(async () => {
  plane = await openConsole();
});
afterAll(() => closePlane(plane));

test('a phone that may be enrolled keeps its key, and one that was refused has its enrolment key revoked', async () => {
  const network = await makeNetwork(plane, plane.token, { name: 'lab', private_cidr: '10.78.0.0/24' });
  const connector = { name: 'edge-1', peer_type: 'connector', endpoint: '203.0.113.1:51820' };
  await enroll(plane, await makeKey(plane, plane.token, network), connector);
  const page = await openLoggedIn(plane, `#/networks/${network}/add-host`, {}, /^Failed to load resource/);
  const submit = page.getByRole('button', { name: /^(Enrol the phone|Try again)$/ });
  const attempts: (string | null)[] = [];
  let status = 0;
  await page.route('**/api/networks/enroll', async (route) => {
    attempts.push(route.request().postData());
    await (status === 0 ? route.abort() : route.fulfill({ status, json: { message: `no ${status}` } }));
  });
  const revoked = page.waitForRequest((request) => request.method() === 'DELETE');
  await page.getByLabel('What joins?').selectOption('phone');
  await page.getByLabel('Name').fill('phone');
  for (status of [500, 0, 502, 503, 504]) {
    const count = attempts.length;
    await submit.click();
    await expect.poll(() => attempts.length).toBe(count + 1);
    await page.getByText(/may have enrolled the phone/).waitFor();
  }
  expect([attempts.length, new Set(attempts).size]).toEqual([5, 1]);
  status = 422;
  await submit.click();
  await page.getByText(/no 422/i).waitFor();
  expect((await revoked).url()).toMatch(/\/enrollment-keys\/\d+$/);
});

const holds = `!dispatchEvent(new Event('beforeunload', { cancelable: true }))`;

test('the key of a phone stays on the screen after the session and on other pages, until a click takes it away', async () => {
  const network = await makeNetwork(plane, plane.token, { name: 'office', private_cidr: '10.77.0.0/24' });
  const connector = { name: 'edge-1', peer_type: 'connector', endpoint: '203.0.113.1:51820' };
  const { status } = await enroll(plane, await makeKey(plane, plane.token, network), connector);
  expect(status).toBe(201);
  const page = await openLoggedIn(plane, `#/networks/${network}/add-host`);
  await page.getByLabel('What joins?').selectOption('phone');
  await page.getByLabel('Name').fill('phone');
  expect(await page.evaluate(holds)).toBe(false);
  await page.getByRole('button', { name: 'Enrol the phone' }).click();
  const phone = page.getByRole('region', { name: 'The phone' });
  const config = await phone.locator('pre').textContent();
  expect(config).toMatch(/PrivateKey = \S{44}/);
  expect(await page.evaluate(holds)).toBe(true);

  const seeKey = async () => expect(await phone.locator('pre').textContent()).toBe(config);
  // The session ends in another window.
  const other = await page.context().newPage();
  await other.goto(plane.url);
  await other.getByRole('button', { name: 'Log out' }).click();
  await seeHeading(page, 'Log in to cpn');
  await seeKey();
  expect(await findBarriers(page)).toEqual([]);
  await logIn(page);
  await seeHeading(page, 'office: add a host');
  await seeKey();
  await goTo(page, '#/audit', 'Audit');
  await seeKey();
  expect(await findBarriers(page)).toEqual([]);

  await phone.getByRole('button', { name: 'Close, and discard the key' }).click();
  expect([await phone.count(), await page.evaluate(holds)]).toEqual([0, false]);

  // What the page of a connector warns of.
  await goTo(page, `#/networks/${network}/peers`, 'office: peers');
  await page.getByRole('link', { name: 'edge-1' }).click();
  for (const action of ['Suspend', 'Remove']) {
    await page.getByRole('button', { name: `${action} edge-1` }).click();
    await page.getByText('phone has no other connector and reaches nothing then.').waitFor();
    await page.keyboard.press('Escape');
  }
});
