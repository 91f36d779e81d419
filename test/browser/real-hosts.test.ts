import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DataCenter, lanRoute } from '../e2e/data-center.ts';
import { builtProgram } from '../lab/built-program.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { onTerminal } from '../lab/terminal.ts';
import { goTo, logIn, openTab, seeHeading, takePicture } from './browser.ts';
import { browserOptions } from './chromium-setup.ts';

let center: DataCenter;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  center = await DataCenter.start();
  browser = await launchOn(center.controlPlane.host);
  await center.addConnector(1);
  await center.addConnector(2);
});
afterAll(async () => {
  await browser?.close();
  await center?.stop();
});

/** A browser on a host of the lab, which reaches what the host reaches. */
async function launchOn(host: Host): Promise<Browser> {
  const path = join(host.folder, 'chromium');
  const script = `#!/bin/sh\nexec ${host.enter([browserOptions.executablePath]).join(' ')} "$@"\n`;
  await writeFile(path, script, { mode: 0o700 });
  return chromium.launch({ ...browserOptions, executablePath: path, env: { ...host.env } });
}

/** Pastes a line into a shell of a host that has the package, and then the key at its prompt. Root needs no sudo, but the line has it. */
async function paste(host: Host, line: string, key: string): Promise<void> {
  const bin = join(host.folder, 'bin');
  await mkdir(bin);
  await symlink(await builtProgram(), join(bin, 'cpn'));
  await writeFile(join(bin, 'sudo'), '#!/bin/sh\nexec "$@"\n', { mode: 0o700 });
  const session = { env: { PATH: `${bin}:${host.env.PATH}` }, dialogue: [[/Enrolment key/, `${key}\r`]] } as const;
  const { exitCode, rows } = await onTerminal(host, await builtProgram(), line, session);
  expect(exitCode, rows.join('\n')).toBe(0);
}

test('a network is run in the console, by real hosts', { timeout: 300_000 }, async () => {
  const { controlPlane, network, lab } = center;
  ({ page } = await openTab({}, browser));
  page.setDefaultTimeout(60_000);
  const email = 'owner@example.net';
  const password = await readFile(join(controlPlane.host.homeDir, 'password'), 'utf8');
  await page.goto(controlPlane.url);
  await logIn(page, { email, password });
  await seeHeading(page, 'Networks');

  await goTo(page, `#/networks/${network}/add-host`, /add a host/);
  await page.getByLabel('Name').fill('web');
  await page.getByRole('button', { name: 'Make a key' }).click();
  await page.locator('pre').nth(1).waitFor();
  const [line = '', key = ''] = await page.locator('pre').allTextContents();
  const web = await lab.addHost('web-1', { address: '203.0.113.21/24' });
  await paste(web, line, key);
  await page.getByText(/web-1 joined with 10\.77\./).waitFor();
  await takePicture(page, 'real-host-joined');
  const daemon = await startDaemon(web);

  await goTo(page, `#/networks/${network}`, /overview/);
  for (const edge of ['edge-1', 'edge-2']) {
    await page.getByRole('gridcell', { name: `web-1 to ${edge}: direct`, exact: true }).waitFor();
  }
  const active = page.getByRole('row').filter({ hasText: lanRoute }).getByRole('cell').nth(1);
  await eventually('edge-1 is active', async () => (await active.textContent()) === 'edge-1', { timeoutMs: 60_000 });
  await takePicture(page, 'real-hosts');
  await lab.hosts.get('edge-1')?.exec(['ip', 'link', 'set', 'eth0', 'down']);
  await page.getByText(`${lanRoute} moved from edge-1 to edge-2`).first().waitFor();
  // The event and the health of the network are two replies, in any order.
  await eventually('edge-2 is active', async () => (await active.textContent()) === 'edge-2');
  await page.getByRole('gridcell', { name: 'web-1 to edge-1: down', exact: true }).click();
  await page.getByRole('dialog').getByText('edge-1 does not answer web-1.').waitFor();
  await takePicture(page, 'real-failover');
  await page.keyboard.press('Escape');

  await goTo(page, `#/networks/${network}/events`, /events/);
  await page
    .getByRole('row')
    .filter({ hasText: `${lanRoute} moved from edge-1 to edge-2` })
    .waitFor();
  await takePicture(page, 'real-events');

  await goTo(page, `#/networks/${network}/peers`, /peers/);
  await page.getByLabel('Select web-1').check();
  await page.getByRole('toolbar').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('row').filter({ hasText: 'web-1' }).waitFor({ state: 'detached' });
  await daemon.awaitLog('the token is gone', ({ error }) => /if this host was removed/.test(String(error)));

  await goTo(page, '#/account', 'Account');
  const changed = 'another password that is long';
  await page.getByLabel('Current password').fill(password);
  await page.getByLabel('New password').fill(changed);
  await page.getByRole('button', { name: 'Change the password' }).click();
  await page.getByText('The password is changed.').waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await logIn(page, { email, password: changed });
  await seeHeading(page, 'Account');
});
