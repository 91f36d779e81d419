import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fillNetworks, fillReports } from '../../scripts/measure/service/fill-networks.ts';
import { withDatabase } from '../control-plane/databases.ts';
import { closePlane, enroll, makeKey, makeNetwork } from '../control-plane/harness.ts';
import { actions, type OfficePeer } from '../control-plane/health/office.ts';
import {
  checkLook,
  findBarriers,
  goTo,
  openConsole,
  openLoggedIn,
  seeHeading,
  takePicture,
  untilRead,
} from './browser.ts';

let plane: Awaited<ReturnType<typeof openConsole>>;
let ranges = 0;
beforeAll(async () => {
  plane = await openConsole({ healthTimes: { flushMs: 50, tickMs: 200, settleMs: 10 } });
});
afterAll(() => closePlane(plane));

const route = '192.168.1.0/24';
const canary = '<img src=x onerror=alert(1)><b>';

/** A network with hosts that report as real ones do, so that the matrix has each state. */
async function makeOffice() {
  ranges += 1;
  const fields = { name: `office-${ranges}`, private_cidr: `10.${ranges}.0.0/24`, routes: [route] };
  const network = await makeNetwork(plane, plane.token, fields);
  const key = await makeKey(plane, plane.token, network);
  const add = async (name: string, peer_type = 'origin'): Promise<OfficePeer & { readonly address: string }> => {
    const { body } = await enroll(plane, key, { name, peer_type });
    return { ...body.data.peer, token: body.data.access_token };
  };
  const edge1 = await add('edge-1', 'connector');
  const edge2 = await add('edge-2', 'connector');
  const web1 = await add('web-1');
  const web2 = await add('web-2');
  const odd = await add(canary);
  const host = actions(plane, network, plane.token);
  const paths = [
    { peer: edge1.id, path: 'direct', rtt_ms: 1.5, handshake_age: 30, rx_rate: 1500, tx_rate: 20 },
    { peer: edge2.id, path: 'stale' },
    { peer: web2.id, path: 'relayed', via: edge1.id },
    { peer: odd.id, path: 'down' },
  ];
  await host.report(web1, { complete: true, paths, routes: [{ route, connector: edge1.id }] });
  await host.report(edge1, {
    paths: [
      { peer: web1.id, path: 'direct' },
      { peer: odd.id, path: 'never' },
    ],
    routes: [{ route, connector: edge1.id, lan: 'up' }],
    map: [{ route, local: '172.16.7.0/24' }],
  });
  await host.report(edge2, { paths: [{ peer: edge1.id, path: 'direct' }], routes: [{ route, connector: edge1.id }] });
  await host.report(odd, { problem: `${canary}nft failed`, pin_mismatches: [web1.id] });
  await host.untilState(odd, 'online');
  const at = `#/networks/${network}`;
  return { ...{ network, at, edge1, edge2, web1, web2, odd }, ...host };
}

const cell = (page: Page, name: string) => page.getByRole('gridcell', { name, exact: true });
const dialogOf = (page: Page) => page.getByRole('dialog');

test('the matrix has a cell of each state, and says why', async () => {
  const { at, odd } = await makeOffice();
  const page = await openLoggedIn(plane, at);
  await seeHeading(page, /overview/);
  const expected = [
    ...['web-1 to edge-1: direct', 'web-1 to web-2: relayed', 'web-1 to edge-2: stale', `web-1 to ${canary}: down`],
    ...[`edge-1 to ${canary}: never`, 'edge-2 to web-1: unknown', 'web-1 itself: online'],
  ];
  for (const name of expected) expect([name, await cell(page, name).count()]).toEqual([name, 1]);
  await page.getByText('3 of 3 rows, 5 of 5 columns').waitFor();
  expect(await page.locator('.matrix .type').allTextContents()).toEqual(['connector', 'server']);
  const shapes = await page
    .locator('.matrix .cell:not(.itself)')
    .evaluateAll((cells) => [
      ...new Set(cells.map((each) => `${each.getAttribute('class')} ${each.getAttribute('d')?.slice(0, 12)}`)),
    ]);
  expect(new Set(shapes.map((text) => text.split(' ').at(1))).size).toBe(6);
  await cell(page, `web-1 to ${canary}: down`).click();
  const dialog = dialogOf(page);
  await dialog.getByText(`${canary} does not answer web-1.`).waitFor();
  await dialog.getByText(`sudo cpn explain ${odd.address}`).waitFor();
  await dialog.getByText(`${canary}nft failed`).waitFor();
  await dialog.getByText('it does not answer edge-1, web-1').waitFor();
  await takePicture(page, 'why');
  expect(await page.locator('main img, main b').count()).toBe(0);
  await page.keyboard.press('Escape');
  await cell(page, 'web-1 to web-2: relayed').click();
  await dialog.getByText('web-1 reaches web-2 through edge-1.').waitFor();
});

test('a pair without endpoints has its latest attempt in its cell, then since when it is direct', async () => {
  const { at, network, report, edge1, web1, web2 } = await makeOffice();
  const instant = '2030-05-06T07:08:09.000Z';
  const tried = { [web1.id]: [{ endpoint: '203.0.113.3:4711', outcome: 'no-answer' }] };
  const [data, fields] = [
    { by: web1.id, observers: 1, proven: [], tried },
    { attempt: 1, tries: 1 },
  ];
  const row = {
    ...{ a: web1.id, b: web2.id, network_id: network, state: 'resting' as const, data: JSON.stringify(data) },
    ...{ ...fields, started_at: instant, at: instant, next_at: instant },
  };
  await withDatabase(plane.dataDir, (db) => db.insertInto('peer_pairs').values(row).execute());
  const page = await openLoggedIn(plane, at);
  const dialog = dialogOf(page);
  await cell(page, 'web-1 to web-2: relayed').click();
  await dialog.getByText('web-1 reaches web-2 through edge-1.').waitFor();
  await dialog.getByText(/^not found at .*; web-1 tried 203\.0\.113\.3:4711: no answer$/).waitFor();
  expect(await cell(page, 'web-1 to web-2: relayed').textContent()).toBe('web-1 to web-2: relayed via edge-1');
  await takePicture(page, 'why-relayed');
  await page.keyboard.press('Escape');
  await withDatabase(plane.dataDir, (db) =>
    db.updateTable('peer_pairs').set({ state: 'direct' }).where('a', '=', web1.id).execute(),
  );
  await report(web1, {
    paths: [
      { peer: web2.id, path: 'direct' },
      { peer: edge1.id, path: 'direct' },
    ],
  });
  await cell(page, 'web-1 to web-2: direct').click();
  await dialog.getByText(/^through NAT, since /).waitFor();
  await takePicture(page, 'why-direct');
});

test('a report changes its cell, and an event its list', async () => {
  const { at, report, web1, edge1, edge2 } = await makeOffice();
  const page = await openLoggedIn(plane, at);
  await cell(page, 'web-1 to edge-1: direct').waitFor();
  await report(web1, { paths: [{ peer: edge1.id, path: 'down' }], routes: [{ route, connector: edge2.id }] });
  await report(edge2, { routes: [{ route, connector: edge2.id }] });
  await cell(page, 'web-1 to edge-1: down').waitFor();
  await page.getByText(`${route} moved from edge-1 to edge-2`).first().waitFor();
  await takePicture(page, 'network-health');
  await goTo(page, `${at}/events`, /events/);
  await page.getByLabel('Type').selectOption('failover');
  await page
    .getByRole('row')
    .filter({ hasText: `${route} moved from edge-1 to edge-2: ` })
    .waitFor();
  await page.getByLabel('Type').selectOption('reconcile recovered');
  await page.getByText('No event of this type is among them.').waitFor();
});

test('while the control plane does not answer, one line says so, and is gone once it does', async () => {
  const { at, report, web1, edge1 } = await makeOffice();
  const page = await openLoggedIn(plane, at, {}, /ERR_INTERNET_DISCONNECTED/);
  await cell(page, 'web-1 to edge-1: direct').waitFor();
  await page.context().setOffline(true);
  // Long polls that wait already are not cut.
  await report(web1, { paths: [{ peer: edge1.id, path: 'down' }] });
  const line = page.getByText('The control plane does not answer. Trying again.');
  await line.waitFor();
  expect(await page.locator('.problem').count()).toBe(1);
  await page.context().setOffline(false);
  await line.waitFor({ state: 'detached' });
  await report(web1, { paths: [{ peer: edge1.id, path: 'direct' }] });
  await cell(page, 'web-1 to edge-1: direct').waitFor();
});

test('the keyboard reaches each cell', async () => {
  const { at } = await makeOffice();
  const page = await openLoggedIn(plane, at);
  await cell(page, 'web-1 to edge-1: direct').waitFor();
  const grid = page.getByRole('grid', { name: 'Who reaches whom' });
  await grid.focus();
  const active = () =>
    page.evaluate<string>(
      'document.getElementById(document.activeElement.getAttribute("aria-activedescendant")).getAttribute("aria-label")',
    );
  expect(await active()).toBe('edge-1 itself: online');
  await page.keyboard.press('ArrowDown');
  expect(await active()).toBe('edge-2 to edge-1: direct');
  await page.keyboard.press('Control+End');
  expect(await active()).toBe('web-1 to web-2: relayed');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  expect(await active()).toBe('web-1 to edge-2: stale');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'web-1 to edge-2' }).waitFor();
  await page.keyboard.press('Escape');
  await dialogOf(page).waitFor({ state: 'detached' });
  expect(await grid.evaluate((element) => element.matches(':focus'))).toBe(true);
  expect(await active()).toBe('web-1 to edge-2: stale');
});

test('filters leave the rows and columns that match', async () => {
  const { at } = await makeOffice();
  const page = await openLoggedIn(plane, at);
  await page.getByRole('button', { name: 'never 1' }).click();
  await page.getByText('1 of 3 rows, 1 of 5 columns').waitFor();
  await page.getByLabel('From', { exact: true }).fill('web');
  await page.getByText('No pair of peers matches.').waitFor();
  await page.getByRole('button', { name: 'Show all' }).click();
  await page.getByLabel('To', { exact: true }).fill('edge connector');
  await page.getByText('3 of 3 rows, 2 of 5 columns').waitFor();
});

test('a peer has its paths, how others see it, its connectors, and the LANs behind it', async () => {
  const { at, web1, edge1, report, edge2 } = await makeOffice();
  const page = await openLoggedIn(plane, `${at}/peer/${web1.id}`);
  await page.getByRole('heading', { name: 'web-1' }).waitFor();
  const row = (text: string) => page.getByRole('row').filter({ hasText: text });
  await row('edge-1').getByText('1.5 ms, handshake 30 s old, receives 1.5 kB/s, sends 20 B/s').waitFor();
  await page.getByRole('table', { name: 'Its connectors' }).getByText('edge-1').waitFor();
  await page.getByText('1.5 kB/s', { exact: true }).waitFor();
  await page.getByRole('button', { name: `Why ${canary}` }).click();
  await dialogOf(page).getByText(`${canary} does not answer web-1.`).waitFor();
  await page.keyboard.press('Escape');
  await goTo(page, `${at}/peer/${edge1.id}`, /a peer/);
  await page.getByRole('row').filter({ hasText: 'answers' }).filter({ hasText: route }).waitFor();
  await page.getByRole('row').filter({ hasText: route }).getByText('is 172.16.7.0/24 there').waitFor();
  await report(edge1, { problem: 'the disk is full' });
  await page.getByText('the disk is full').waitFor();
  await goTo(page, `${at}/peer/999999`, /a peer/);
  await page.getByText('There is no such peer.').waitFor();
  await goTo(page, `${at}/peer/${edge2.id}`, /a peer/);
  await page.getByRole('heading', { name: 'edge-2' }).waitFor();
  await page.getByRole('button', { name: 'Suspend edge-2' }).click();
  await dialogOf(page).getByRole('button', { name: 'Suspend' }).click();
  await page.getByText('It is suspended: no host talks to it').waitFor();
});

test('the list of peers has the state of each, as it changes', async () => {
  const { at, web1, untilState } = await makeOffice();
  const page = await openLoggedIn(plane, `${at}/peers`);
  await untilState(web1, 'online');
  await page.getByRole('row').filter({ hasText: 'web-1' }).getByText('online').waitFor();
  await page.getByRole('row').filter({ hasText: 'web-2' }).getByText('unknown').waitFor();
});

test('networks and overview begin with what is down', async () => {
  const { at, network, edge1, edge2 } = await makeOffice();
  const key = await makeKey(plane, plane.token, network);
  await enroll(plane, key, { name: 'edge-3', peer_type: 'connector' });
  const page = await openLoggedIn(plane, '#/networks');
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: `office-${ranges}`, exact: true }) });
  await row.getByText('1 connector never answered').waitFor();
  await page.getByText(/networks? needs? attention\.$/).waitFor();
  await goTo(page, at, /overview/);
  const summary = page.getByRole('region', { name: 'Summary' });
  await summary.getByText('never answered: edge-3, a connector.').waitFor();
  await summary.getByText(`It cannot take over ${route}.`).waitFor();
  await summary.getByText('edge-3 joined').waitFor();
  const routes = page.getByRole('table', { name: 'Routes' });
  await routes.getByText('edge-3 (never answered)').waitFor();
  await routes.getByText('is 172.16.7.0/24 behind edge-1').waitFor();
  expect(await routes.getByRole('link').allTextContents()).toEqual([edge1.name, edge1.name, edge2.name]);
  await summary.getByRole('link', { name: '2 unknown peers' }).click();
  await page.getByText(/^2 of 6 peers$/).waitFor();
});

test('a route has its domains and their DNS servers', async () => {
  ranges += 1;
  const route_dns = [{ route, dns_servers: ['192.168.1.53', '192.168.1.54'], domains: ['corp.example', 'b.example'] }];
  const fields = { name: 'domains', private_cidr: `10.${ranges}.0.0/24`, routes: [route], route_dns };
  const page = await openLoggedIn(plane, `#/networks/${await makeNetwork(plane, plane.token, fields)}`);
  const routes = page.getByRole('table', { name: 'Routes' });
  await routes.getByText('domains corp.example, b.example; DNS 192.168.1.53, 192.168.1.54').waitFor();
});

test('what is empty says what to type', async () => {
  ranges += 1;
  const network = await makeNetwork(plane, plane.token, { name: 'new', private_cidr: `10.${ranges}.0.0/24` });
  const page = await openLoggedIn(plane, `#/networks/${network}`);
  await page.getByText(`cpn network update ${network} --add-route`).waitFor();
  await plane.call('PATCH', `/api/networks/${network}`, { token: plane.token, body: { routes: [route] } });
  await page.getByText('sudo cpn drain', { exact: true }).waitFor();
  await enroll(plane, await makeKey(plane, plane.token, network), { name: 'web-1' });
  await page.getByText('sudo systemctl enable --now cpn').waitFor();
});

/** A network of so many hosts that report. */
async function makeLarge(count: number): Promise<number> {
  return withDatabase(plane.dataDir, async (db) => {
    const members = await fillNetworks(db, 1, count);
    await fillReports(db, members);
    return members[0]?.network ?? 0;
  });
}

test('of 1,000 peers only the cells on the screen are made, and each is reached', async () => {
  const network = await makeLarge(1000);
  const page = await openLoggedIn(plane, `#/networks/${network}`);
  await page.getByText('1000 of 1000 rows, 1000 of 1000 columns').waitFor();
  expect(await page.getByRole('gridcell').count()).toBeLessThan(3000);
  await takePicture(page, 'matrix-of-1000');
  await page.getByRole('grid').focus();
  await page.keyboard.press('Control+End');
  await cell(page, 'edge-1000 itself: online').waitFor();
  expect(await page.getByRole('gridcell').count()).toBeLessThan(3000);
  await page.getByLabel('From', { exact: true }).fill('edge-500');
  await page.getByRole('button', { name: 'down' }).first().click();
  await page.getByText('1 of 1000 rows, 5 of 1000 columns').waitFor();
});

test('axe-core finds nothing in light and dark colours', async () => {
  const { at, web1, edge1, edge2, report } = await makeOffice();
  const page = await openLoggedIn(plane, at);
  const check = async (name: string) => {
    await untilRead(page);
    await checkLook(page, name);
  };
  await cell(page, 'web-1 to edge-1: direct').waitFor();
  await report(web1, { routes: [{ route, connector: edge2.id }] });
  await report(edge2, { routes: [{ route, connector: edge2.id }] });
  await page.getByText(`${route} moved from edge-1 to edge-2`).first().waitFor();
  await check('matrix');
  await cell(page, `web-1 to ${canary}: down`).click();
  await dialogOf(page).waitFor();
  await check('why');
  await page.keyboard.press('Escape');
  await goTo(page, `${at}/peer/${edge1.id}`, /a peer/);
  await page.getByRole('heading', { name: 'edge-1' }).waitFor();
  await check('peer');
  await goTo(page, `${at}/events`, /events/);
  await page.getByRole('row').filter({ hasText: 'edge-1 joined' }).waitFor();
  await check('events');
});

test.each([360, 1440, 3840])('no page is wider than a screen of %i pixels', async (width) => {
  const { at, web1 } = await makeOffice();
  const page = await openLoggedIn(plane, at, { viewport: { width, height: 800 } });
  const places: readonly (readonly [string, RegExp])[] = [
    [at, /overview/],
    [`${at}/peer/${web1.id}`, /a peer/],
    [`${at}/events`, /events/],
  ];
  for (const [place, heading] of places) {
    await goTo(page, place, heading);
    await untilRead(page);
    const [wide, seen] = await page.evaluate<number[]>(
      '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
    );
    expect([place, wide]).toEqual([place, seen]);
    await takePicture(page, `${heading.source.replaceAll(/\W/g, '')}-${width}`);
    if (width === 360) expect([place, await findBarriers(page)]).toEqual([place, []]);
  }
});
