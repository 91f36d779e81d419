import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { closePlane, enroll, makeKey, makeNetwork } from '../control-plane/harness.ts';
import {
  checkLook,
  findBarriers,
  goTo,
  logIn,
  openConsole,
  openLoggedIn,
  openTab,
  seeHeading,
  takePicture,
  untilRead,
} from './browser.ts';

let plane: Awaited<ReturnType<typeof openConsole>>;
let ranges = 0;
beforeAll(async () => {
  plane = await openConsole();
});
afterAll(() => closePlane(plane));

const route = '192.168.1.0/24';
const canary = '<img src=x onerror=alert(1)><b>';

/** An open network with hosts, one of which has a name that is markup. */
async function makeOffice() {
  ranges += 1;
  const fields = { name: `office-${ranges}`, private_cidr: `10.${ranges}.0.0/24`, routes: [route] };
  const network = await makeNetwork(plane, plane.token, fields);
  const key = await makeKey(plane, plane.token, network);
  const add = async (name: string, more: object = {}): Promise<number> => {
    const { body } = await enroll(plane, key, { name, enforces_rules: true, ...more });
    return body.data.peer.id;
  };
  await add('edge', { peer_type: 'connector', endpoint: '203.0.113.1:51820' });
  const anna = await add('anna', { peer_type: 'admin_device' });
  await add('web-1');
  await add(canary, { enforces_rules: false });
  const path = `/api/networks/${network}/rules`;
  const at = `#/networks/${network}`;
  return { ...{ network, at, anna }, ...{ read: () => read(path), set: (body: object) => set(path, body) } };
}

const ssh = { name: 'ssh', from: ['any'], to: ['peer:web-1', `peer:${canary}`], protocol: 'tcp', ports: ['22'] };

async function read(path: string) {
  return (await plane.call('GET', path, { token: plane.token })).body.data;
}

async function set(path: string, body: object) {
  const { status, body: reply } = await plane.call('PUT', path, { token: plane.token, body });
  if (status !== 200) throw new Error(JSON.stringify(reply));
}

const dialogOf = (page: Page) => page.getByRole('dialog');
const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text });
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

test('an owner closes a network, sees first who loses what, and keeps it closed', async () => {
  const { at, anna, read } = await makeOffice();
  const page = await openLoggedIn(plane, `${at}/peer/${anna}`);
  await seeHeading(page, /a peer/);
  await button(page, 'Change anna').click();
  await page.getByLabel('Tags').fill('admin laptop');
  await button(page, 'Save').click();
  await page.getByText('admin, laptop').waitFor();
  await page.getByText('This network is open').waitFor();
  await page.getByRole('link', { name: 'Rules' }).first().click();
  await seeHeading(page, /: rules/);
  await page.getByText('This network is open: every peer reaches every peer and route.').waitFor();
  await page.getByText('To close it, edit the rules').waitFor();
  await button(page, 'Edit the rules').click();
  await page.getByLabel('Mode').selectOption('closed');

  await button(page, 'Add a rule').click();
  await button(page, 'Keep').click();
  await page.getByText('Name must not be empty.').waitFor();
  await page.getByLabel('Name').fill('web');
  const from = page.getByLabel('Add to From');
  await from.fill('adm');
  const options = page.locator('datalist').first().locator('option');
  expect(await options.evaluateAll((found) => found.map((each) => each.getAttribute('value')))).toEqual(['tag:admin']);
  await from.fill('tag:admin');
  await page.keyboard.press('Enter');
  await page.getByLabel('Add to To').fill('peer:web-1');
  await page.getByLabel('Ports').fill('443');
  await button(page, 'Keep').click();
  await row(page, 'tcp 443').waitFor();

  await button(page, 'Add a test').click();
  await page.getByLabel('From').fill('peer:anna');
  await page.getByLabel('To', { exact: true }).fill('peer:web-1');
  await page.getByLabel('Port', { exact: true }).fill('22');
  await button(page, 'Keep').click();
  await button(page, 'Preview').click();
  const dialog = dialogOf(page);
  await dialog.getByText('A test fails, so that these rules cannot be applied.').waitFor();
  expect(await button(page, 'Apply').count()).toBe(0);
  await button(page, 'Close').click();
  await button(page, 'Change peer:anna to peer:web-1').click();
  await page.getByLabel('Must be').selectOption('deny');
  await button(page, 'Keep').click();
  await button(page, 'Preview').click();
  await dialog.getByText('The test passes.').waitFor();
  await dialog.getByRole('heading', { name: /^Lost: [1-9]/ }).waitFor();
  await dialog.getByText('Nothing enforces the rules for connections to').waitFor();
  expect((await read()).mode).toBe('open');
  await page.getByLabel('Return to the earlier rules unless I confirm the new ones').check();
  await page.getByLabel('Seconds to confirm').fill('600');
  await button(page, 'Apply').click();
  await page.getByText('This network is closed: what no rule allows is denied.').waitFor();
  await page.getByText(/^The earlier rules return in /).waitFor();
  const { mode, rules, confirm_until } = await read();
  expect([mode, rules.map(({ name }: { name: string }) => name), typeof confirm_until]).toEqual([
    ...['closed', ['web']],
    'string',
  ]);
  expect(await row(page, canary).textContent()).toContain('nothing');

  await goTo(page, at, /overview/);
  await page.getByLabel('Show', { exact: true }).selectOption('tcp');
  await page.getByRole('gridcell', { name: 'anna to web-1: allowed by web', exact: true }).click();
  await dialog.getByText('tcp 443 is allowed').waitFor();
  await dialog.getByText('Enforced at web-1').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('gridcell', { name: 'web-1 to anna: denied', exact: true }).waitFor();
  await page.getByLabel('Port', { exact: true }).fill('22');
  await page.getByRole('gridcell', { name: 'anna to web-1: denied', exact: true }).waitFor();

  await goTo(page, `${at}/rules`, /: rules/);
  await button(page, 'Confirm').click();
  await page.getByText('The rules are confirmed.').waitFor();
  await page.getByText(/^The earlier rules return/).waitFor({ state: 'detached' });
  expect((await read()).confirm_until).toBeUndefined();
});

test('rules that changed meanwhile are not replaced, and can be loaded', async () => {
  const { at, read, set } = await makeOffice();
  const page = await openLoggedIn(plane, `${at}/rules`);
  await button(page, 'Edit the rules').click();
  await page.getByLabel('Only hosts that enforce rules can be reached').check();
  await set({ mode: 'closed', rules: [ssh] });
  await button(page, 'Preview').click();
  await button(page, 'Apply').click();
  await dialogOf(page).getByText('The rules changed since you loaded them').waitFor();
  await button(page, 'Load the present rules').click();
  await row(page, 'tcp 22').waitFor();
  await button(page, 'Edit the rules').waitFor();
  expect((await read()).require_enforcement).toBe(false);
});

test('a rule is changed, moved and removed, and a refusal names it', async () => {
  const { at, read, set } = await makeOffice();
  const dns = { ...ssh, name: 'dns', protocol: 'udp', ports: ['53'] };
  await set({ mode: 'open', rules: [ssh, dns, { ...dns, name: 'last' }] });
  const page = await openLoggedIn(plane, `${at}/rules`);
  await page.getByText('These rules are stored. They apply when the network is closed.').waitFor();
  await button(page, 'Edit the rules').click();
  await button(page, 'Down ssh').click();
  await expect.poll(() => button(page, 'Down ssh').evaluate((pressed) => pressed.matches(':focus'))).toBe(true);
  await button(page, 'Remove last').click();
  await button(page, 'Change ssh').click();
  await button(page, `Remove peer:${canary} from To`).click();
  await page.getByLabel('Add to To').fill('peer:nosuch');
  await button(page, 'Keep').click();
  await button(page, 'Preview').click();
  await page.locator('.problem').filter({ hasText: 'ssh' }).filter({ hasText: 'nosuch' }).waitFor();
  await button(page, 'Change ssh').click();
  await button(page, 'Remove peer:nosuch from To').click();
  await button(page, 'Keep').click();
  await button(page, 'Preview').click();
  await button(page, 'Apply').click();
  await page.getByText('The rules are applied.').waitFor();
  const { rules } = await read();
  expect(rules).toEqual([dns, { ...ssh, to: ['peer:web-1'] }]);
});

test('a member reads rules, and who can reach a peer or a route, and changes none', async () => {
  const { at, anna, set } = await makeOffice();
  await set({ mode: 'closed', rules: [ssh, { ...ssh, name: 'lan', from: ['peer:anna'], to: [`route:${route}`] }] });
  const member = { email: `member-${ranges}@example.net`, password: 'correct horse battery staple' };
  await plane.call('POST', '/api/users', { token: plane.token, body: { ...member, role: 'member' } });
  const { page } = await openTab();
  await page.goto(`${plane.url}/${at}/rules`);
  await logIn(page, member);
  await row(page, canary).first().waitFor();
  expect(await button(page, 'Edit the rules').count()).toBe(0);
  expect(await page.locator('main img, main b').count()).toBe(0);
  await goTo(page, at, /overview/);
  await button(page, `Who can reach it ${route}`).click();
  const dialog = dialogOf(page);
  await dialog.getByText('No peer or route may reach it with tcp 443.').waitFor();
  await dialog.getByLabel('Port', { exact: true }).fill('22');
  await dialog.getByRole('row').filter({ hasText: 'peer:anna' }).filter({ hasText: 'lan' }).waitFor();
  await page.keyboard.press('Escape');
  await goTo(page, `${at}/peer/${anna}`, /a peer/);
  await page.getByText('No peer or route may reach it with tcp 443.').waitFor();
  await button(page, 'Change anna').click();
  expect(await page.getByLabel('Tags').count()).toBe(0);
});

test('a host that joins with a key has the tags of the key', async () => {
  const { network, at } = await makeOffice();
  const page = await openLoggedIn(plane, `${at}/add-host`);
  await page.getByLabel('Name').fill('web');
  await page.getByLabel('Tags').fill('No_Tag');
  await button(page, 'Make a key').click();
  await page.getByText(/^✕ Tags .*No_Tag/).waitFor();
  await page.getByLabel('Tags').fill('web, prod');
  await button(page, 'Make a key').click();
  const key = await page.locator('pre').nth(1).textContent();
  await goTo(page, `${at}/keys`, /enrolment keys/);
  await row(page, 'prod web').waitFor();
  await enroll(plane, key ?? '', { name: 'web-7' });
  await goTo(page, `${at}/peers`, /: peers/);
  await row(page, 'web-7').filter({ hasText: 'tag:prod tag:web' }).waitFor();
  await page.getByLabel('Search').fill('prod');
  await page.getByText('1 of 5 peers').waitFor();
  expect((await read(`/api/networks/${network}`)).peers.at(-1).tags).toEqual(['prod', 'web']);
});

test('the list of peers names what enforces the rules of a closed network', async () => {
  const { at, set } = await makeOffice();
  const page = await openLoggedIn(plane, `${at}/peers`);
  await row(page, 'anna').waitFor();
  expect(await page.getByRole('columnheader', { name: 'Enforced by' }).count()).toBe(0);
  await set({ mode: 'closed', rules: [ssh] });
  await row(page, 'anna').filter({ hasText: 'destination' }).waitFor();
  await row(page, canary).filter({ hasText: '✕ nothing' }).waitFor();
});

test('at an earlier control plane the pages are as before', async () => {
  const { at, anna } = await makeOffice();
  const page = await openLoggedIn(plane);
  await page.route(/\/rules/, (asked) => asked.fulfill({ status: 404, json: { message: 'there is no such thing' } }));
  await goTo(page, `${at}/peer/${anna}`, /a peer/);
  expect(await page.getByText('Who can reach it').count()).toBe(0);
  await goTo(page, at, /overview/);
  expect(await page.getByRole('link', { name: 'Rules' }).count()).toBe(0);
  expect(await page.getByLabel('Show', { exact: true }).count()).toBe(0);
  await goTo(page, `${at}/rules`, /: rules/);
  await page.getByText('This control plane has no rules.').waitFor();
});

test.each([360, 1440])('the pages of rules fit a screen of %i pixels, and axe-core finds nothing', async (width) => {
  const { at, set } = await makeOffice();
  const test = { from: 'any', to: 'peer:web-1', protocol: 'tcp', port: 22, expect: 'allow' };
  await set({ mode: 'closed', rules: [ssh], tests: [test], confirm_within_seconds: 600 });
  const page = await openLoggedIn(plane, `${at}/rules`, { viewport: { width, height: 800 } });
  const check = async (name: string) => {
    await untilRead(page);
    const [wide, seen] = await page.evaluate<number[]>(
      '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
    );
    expect([name, wide]).toEqual([name, seen]);
    await takePicture(page, `${name}-${width}`);
    if (width === 360) expect([name, await findBarriers(page)]).toEqual([name, []]);
    else await checkLook(page, name);
  };
  await row(page, 'tcp 22').first().waitFor();
  await check('rules');
  await button(page, 'Edit the rules').click();
  await check('rules-editor');
  await button(page, 'Change ssh').click();
  await check('rule');
  await page.keyboard.press('Escape');
  await button(page, 'Add a test').click();
  await check('rule-test');
  await page.keyboard.press('Escape');
  await page.getByLabel('Mode').selectOption('open');
  await button(page, 'Preview').click();
  await dialogOf(page).waitFor();
  await check('rules-preview');
  await page.keyboard.press('Escape');
  await goTo(page, at, /overview/);
  await page.getByLabel('Show', { exact: true }).selectOption('icmp');
  await page.getByRole('grid').waitFor();
  await check('access');
});
