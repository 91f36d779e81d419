import { randomBytes } from 'node:crypto';
import { Secret as Key, TOTP } from 'otpauth';
import type { CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { closePlane } from '../control-plane/harness.ts';
import { checkLook, goTo, logIn, openConsole, openLoggedIn, openTab, seeHeading } from './browser.ts';

let plane: Awaited<ReturnType<typeof openConsole>>;
/** The console by a DNS name: browsers offer passkeys at no address. */
let local: string;
beforeAll(async () => {
  plane = await openConsole();
  local = plane.url.replace('127.0.0.1', 'localhost');
});
afterAll(() => closePlane(plane));

const password = 'a long enough password';

async function makeUser(role = 'member') {
  const email = `user-${randomBytes(4).toString('hex')}@example.net`;
  const made = await plane.call('POST', '/api/users', { token: plane.token, body: { email, password, role } });
  expect(made.status).toBe(201);
  return { email, password };
}

/** An authenticator in the browser, which has a user that agrees to everything. */
async function addAuthenticator(page: Page): Promise<{ readonly cdp: CDPSession; readonly authenticatorId: string }> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return { cdp, authenticatorId };
}

async function openAccount(url: string, user: { email: string; password: string }): Promise<Page> {
  const { page } = await openTab();
  await page.goto(url);
  await logIn(page, user);
  await seeHeading(page, 'Networks');
  await goTo(page, '#/account', 'Account');
  return page;
}

async function logOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Log out' }).click();
  await seeHeading(page, 'Log in to cpn');
}

const codesOf = async (page: Page) =>
  (
    await page
      .locator('pre')
      .filter({ hasText: /^([A-Z2-9]{4}-){3}/ })
      .textContent()
  )
    ?.trim()
    .split('\n') ?? [];

test('a passkey is added, opens the next session by the keyboard alone, and is removed', async () => {
  const user = await makeUser();
  const page = await openAccount(local, user);
  const { cdp, authenticatorId } = await addAuthenticator(page);
  await page.getByRole('heading', { name: 'Second factors' }).waitFor();
  await page
    .locator('form')
    .filter({ has: page.getByLabel('Kind') })
    .getByLabel('Name of the factor')
    .fill('laptop');
  await page.getByRole('button', { name: 'Add a second factor' }).click();
  await page.getByText('laptop is added.').waitFor();
  expect(await codesOf(page)).toHaveLength(10);
  const file = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download cpn-recovery-codes.txt' }).click();
  expect((await file).suggestedFilename()).toBe('cpn-recovery-codes.txt');
  await checkLook(page, 'second-factors');
  const { credentials } = await cdp.send('WebAuthn.getCredentials', { authenticatorId });
  expect(credentials).toMatchObject([{ rpId: 'localhost', signCount: 1 }]);

  await logOut(page);
  await logIn(page, user);
  await seeHeading(page, 'Second factor');
  await checkLook(page, 'second-step');
  await page.getByRole('button', { name: 'Use a passkey' }).waitFor();
  // The button has the focus.
  await page.keyboard.press('Enter');
  await seeHeading(page, /Account|Networks/);
  await goTo(page, '#/networks', 'Networks');
  await goTo(page, '#/account', 'Account');
  await page.getByRole('row').filter({ hasText: 'laptop' }).getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByText('laptop is removed.').waitFor();
  await logOut(page);
  await logIn(page, user);
  await seeHeading(page, /Account|Networks/);
});

test('a passkey that is not used, or of another user, opens nothing, and a recovery code does', async () => {
  const user = await makeUser();
  const page = await openAccount(local, user);
  const { cdp, authenticatorId } = await addAuthenticator(page);
  await page.getByRole('button', { name: 'Add a second factor' }).click();
  await page.getByText('Passkey is added.').waitFor();
  const [code = ''] = await codesOf(page);
  await logOut(page);
  await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
  await cdp.send('WebAuthn.clearCredentials', { authenticatorId });
  await logIn(page, user);
  await page.getByRole('button', { name: 'Use a passkey' }).click();
  await page.getByText('The passkey was not used. Try again.').waitFor();
  await page.getByRole('button', { name: 'Use a recovery code' }).click();
  await page.getByLabel('Recovery code').fill('AAAA-AAAA-AAAA-AAAA');
  await page.keyboard.press('Enter');
  await page.getByText('The recovery code is wrong or was used before; take another one.').waitFor();
  await page.getByLabel('Recovery code').fill(code.toLowerCase());
  await page.keyboard.press('Enter');
  await page.getByText('Recovery codes left: 9.').first().waitFor();
  await seeHeading(page, /Account|Networks/);
});

test('an app is added at an address, where the page names why there are no passkeys, and a code opens the session', async () => {
  const user = await makeUser();
  const page = await openAccount(plane.url, user);
  await page.getByText(/No passkeys here: a passkey belongs to a DNS name/).waitFor();
  await page
    .locator('form')
    .filter({ has: page.getByLabel('Kind') })
    .getByLabel('Name of the factor')
    .fill('phone');
  await page.getByRole('button', { name: 'Add a second factor' }).click();
  await page.getByRole('img', { name: 'The secret of the app as a QR code' }).waitFor();
  await checkLook(page, 'authenticator-app');
  const secret =
    (await page
      .locator('pre')
      .filter({ hasText: /^[A-Z2-7]{32}$/ })
      .textContent()) ?? '';
  const codeAt = (ms: number) => new TOTP({ secret: Key.fromBase32(secret) }).generate({ timestamp: Date.now() + ms });
  await page.getByLabel('Code', { exact: true }).fill('000000');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByText('The code is wrong; check the clock of the phone, and give the present code.').waitFor();
  const used = codeAt(0);
  await page.getByLabel('Code', { exact: true }).fill(used);
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByText('phone is added.').waitFor();
  await logOut(page);

  await logIn(page, user);
  await seeHeading(page, 'Second factor');
  const field = page.getByLabel('Code', { exact: true });
  expect(await page.evaluate('document.activeElement.name')).toBe('code');
  expect([await field.getAttribute('autocomplete'), await field.getAttribute('inputmode')]).toEqual([
    'one-time-code',
    'numeric',
  ]);
  await page.keyboard.type(used);
  await page.keyboard.press('Enter');
  await page.getByText('The code is wrong or was used before; wait for the next one.').waitFor();
  await page.getByRole('button', { name: 'Start again' }).click();
  await seeHeading(page, 'Log in to cpn');
  await logIn(page, user);
  await seeHeading(page, 'Second factor');
  await page.keyboard.type(codeAt(30_000));
  await page.keyboard.press('Enter');
  await seeHeading(page, /Account|Networks/);
});

test('an owner sees who has a second factor, and removes those of a user that lost them', async () => {
  const user = await makeUser();
  const page = await openAccount(plane.url, user);
  await page.getByRole('button', { name: 'Add a second factor' }).click();
  const secret =
    (await page
      .locator('pre')
      .filter({ hasText: /^[A-Z2-7]{32}$/ })
      .textContent()) ?? '';
  await page.getByLabel('Code', { exact: true }).fill(new TOTP({ secret: Key.fromBase32(secret) }).generate());
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByText('Authenticator app is added.').waitFor();

  const owner = await openLoggedIn(plane, '#/users');
  const row = owner.getByRole('row').filter({ hasText: user.email });
  await row.getByRole('cell', { name: 'yes', exact: true }).waitFor();
  await row.getByRole('button', { name: 'Remove second factors' }).click();
  await owner.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await owner.getByText(`The second factors of ${user.email} are removed.`).waitFor();
  await row.getByRole('cell', { name: 'no', exact: true }).waitFor();
});
