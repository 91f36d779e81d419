import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { chromium, type Locator, type Page } from 'playwright-core';
import { browserOptions } from '../test/browser/chromium-setup.ts';
import { run } from '../test/lab/run.ts';
import { type Demo, withDemo } from './keep-demo.ts';

/** Takes the pictures that README and docs show, from the console of the demo. */
const folder = join(import.meta.dirname, '../docs/console');
const width = 900;
const pathOf = (name: string) => join(folder, `${name}.png`);
const say = (text: string) => process.stdout.write(`${text}\n`);

mkdirSync(folder, { recursive: true });
await withDemo(say, async (demo) => {
  const browser = await chromium.launch(browserOptions);
  try {
    const looks = {
      viewport: { width, height: 700 },
      colorScheme: 'light',
      locale: 'en-GB',
      timezoneId: 'UTC',
    } as const;
    const context = await browser.newContext(looks);
    // What the daemons report comes with their passes.
    context.setDefaultTimeout(300_000);
    const page = await context.newPage();
    await logIn(page, demo);
    await takePictures(page, demo);
  } finally {
    await browser.close();
  }
});
process.exit();

async function logIn(page: Page, { url, email, password }: Demo): Promise<void> {
  await page.goto(url);
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('link', { name: 'office' }).click();
}

async function takePictures(page: Page, { on, hostUrl }: Demo): Promise<void> {
  const heading = (name: string) => page.getByRole('heading', { name, exact: true });
  for (const text of ['direct 48', 'relayed 6', 'down 2']) await page.getByRole('button', { name: text }).waitFor();
  await keep(page, 'matrix', heading('Who reaches whom'), page.getByRole('heading', { name: /^Traffic/ }));

  await page.getByRole('gridcell', { name: 'web-2 to db-1: down' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Witnesses').waitFor();
  await dialog.screenshot({ path: pathOf('why') });
  await page.keyboard.press('Escape');

  await run([on, 'edge-1', 'cpn', 'drain']);
  await page.getByText('moved from edge-1 to edge-2').first().waitFor();
  await run([on, 'edge-1', 'cpn', 'drain', '--undo']);
  await page.getByText('moved from edge-2 to edge-1').first().waitFor();
  await page
    .getByRole('row')
    .filter({ hasText: '6 of 6 hosts use it' })
    .filter({ hasText: 'edge-1, edge-2' })
    .waitFor();
  await keep(page, 'routes', heading('Routes'), heading('Who reaches whom'));

  await page.getByRole('grid').getByRole('link', { name: 'anna', includeHidden: true }).first().click();
  await heading('Its connectors').waitFor();
  await page.getByRole('img', { name: /^received: mean/ }).waitFor();
  await keep(page, 'peer', heading('Paths'), heading('Its connectors'));

  await page.getByRole('link', { name: 'Add a host' }).click();
  await page.getByLabel('Name', { exact: true }).fill('web-3');
  await page.getByLabel('Address of the control plane').fill(hostUrl);
  await page.getByLabel('Endpoint').fill('203.0.113.24:51820');
  await page.getByRole('button', { name: 'Make a key' }).click();
  await heading('Paste this on the host').waitFor();
  await keep(page, 'add-host', heading('Paste this on the host'), null);
}

/** Takes the part of the page between two headings, or to its end. */
async function keep(page: Page, name: string, from: Locator, to: Locator | null): Promise<void> {
  // The pointer and the focus are no part of a picture.
  await page.mouse.move(0, 0);
  await page.evaluate('scrollTo(0, 0); document.activeElement.blur()');
  const topOf = async (place: Locator) => ((await place.boundingBox())?.y ?? 0) - 16;
  const y = await topOf(from);
  const end = to === null ? await page.evaluate<number>('document.documentElement.scrollHeight') : await topOf(to);
  await page.screenshot({ path: pathOf(name), fullPage: true, clip: { x: 0, y, width, height: end - y } });
  say(`docs/console/${name}.png: ${Math.round(statSync(pathOf(name)).size / 1024)} KiB`);
}
