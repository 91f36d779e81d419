import { expect, onTestFinished, test } from 'vitest';
import { closePlane } from '../control-plane/harness.ts';
import { findPort, path, settingsFor } from '../control-plane/oidc/browser.ts';
import { startProvider } from '../control-plane/oidc/provider.ts';
import { checkLook, openConsole, openTab, seeHeading } from './browser.ts';

async function openOffice(options: { allowsPasswords?: boolean } = {}) {
  const port = await findPort();
  const provider = await startProvider(`http://127.0.0.1:${port}${path}/callback`);
  onTestFinished(provider.stop);
  const publicUrls = [new URL(`http://127.0.0.1:${port}/`)];
  const plane = await openConsole({ port, publicUrls, oidc: settingsFor(provider.url), refreshPauseMs: 50 });
  onTestFinished(() => closePlane(plane));
  return { plane, provider, ...options };
}

const button = { name: 'Log in with single sign-on' };

test('a user logs in at the issuer, comes back to the page that it opened, and stays logged in', async () => {
  const { plane, provider } = await openOffice();
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['net-admins'] });
  provider.subject = 's1';
  const { page } = await openTab();
  await page.goto(`${plane.url}/#/account`);
  await page.getByRole('button', button).waitFor();
  await checkLook(page, 'login with single sign-on');
  await page.getByRole('button', button).click();
  await seeHeading(page, 'Account');
  await page.getByText('ada@example.net').first().waitFor();
  expect(new URL(page.url()).hash).toBe('#/account');
  await page.reload();
  await seeHeading(page, 'Account');
  // The end of a login is not in the history.
  expect(await page.evaluate('sessionStorage.length')).toBe(0);
});

test('a refusal is shown at the login, which can be tried again', async () => {
  const { plane, provider } = await openOffice();
  provider.accounts.set('s1', { email: 'eve@example.net', groups: ['others'] });
  provider.subject = 's1';
  const { page } = await openTab();
  await page.goto(plane.url);
  await page.getByRole('button', button).click();
  await page.getByText('No group of this user has a role here').waitFor();
  provider.accounts.set('s1', { email: 'eve@example.net', groups: ['staff'] });
  await page.getByRole('button', button).click();
  await seeHeading(page, 'Networks');
});
