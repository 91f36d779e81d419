import { readFileSync } from 'node:fs';
import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import nacl from 'tweetnacl';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { withDatabase } from '../control-plane/databases.ts';
import { closePlane, enroll, makeFolder, makeKey, makeNetwork, owner, publicKey } from '../control-plane/harness.ts';
import { run } from '../lab/run.ts';
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

/** A network with a range of its own. */
function addNetwork(fields: object = {}): Promise<number> {
  ranges += 1;
  return makeNetwork(plane, plane.token, { name: `net-${ranges}`, private_cidr: `10.${ranges}.0.0/16`, ...fields });
}

async function addPeer(network: number, fields: object = {}): Promise<number> {
  const key = await makeKey(plane, plane.token, network);
  const { status, body } = await enroll(plane, key, fields);
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body.data.peer.id;
}

/** The command or the secret that is shown. */
const readText = async (page: Page) => (await page.locator('pre').first().textContent()) ?? '';

const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });

describe('a session', () => {
  test('begins with the right password, survives a reload, ends with a click, and no script reads it', async () => {
    const { page } = await openTab();
    await page.goto(plane.url);
    await logIn(page, { ...owner, password: 'not this one' });
    await page.getByText('E-mail address or password is wrong.').waitFor();
    await logIn(page);
    await seeHeading(page, 'Networks');
    expect(await page.evaluate('[document.cookie, localStorage.length, sessionStorage.length]')).toEqual(['', 1, 0]);
    expect((await page.context().cookies()).map(({ httpOnly, sameSite, path }) => [httpOnly, sameSite, path])).toEqual([
      [true, 'Strict', '/'],
    ]);
    await page.reload();
    await seeHeading(page, 'Networks');
    await page.getByRole('button', { name: 'Log out' }).click();
    await seeHeading(page, 'Log in to cpn');
    expect(await page.getByText('Your session ended.').count()).toBe(0);
    expect(await page.context().cookies()).toEqual([]);
    expect(await page.evaluate('localStorage.length')).toBe(0);
  });

  test('is of no use to another port of the host, whose cookies lock no user out', async () => {
    const received: string[] = [];
    const neighbour = createServer((asked, reply) => {
      received.push(asked.headers.cookie ?? '');
      const planted = `cpn_session=cpu_${'A'.repeat(43)}; Path=/api/`;
      reply.writeHead(200, { 'content-type': 'text/html', 'set-cookie': planted }).end('<h1>neighbour</h1>');
    });
    await new Promise<void>((resolve) => neighbour.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void neighbour.close());
    const { page } = await openTab();
    await page.goto(plane.url);
    await logIn(page);
    await seeHeading(page, 'Networks');
    await page.goto(`http://127.0.0.1:${(neighbour.address() as AddressInfo).port}/`);
    await page.getByRole('heading', { name: 'neighbour' }).waitFor();
    expect(await page.evaluate('localStorage.length')).toBe(0);
    const [, stolen = ''] = /^cpn_session=(.+)$/.exec(received[0] ?? '') ?? [];
    expect(stolen).toMatch(/^cpu_/);
    for (const headers of [{ cookie: `cpn_session=${stolen}` }, { authorization: `Bearer ${stolen}` }]) {
      expect((await plane.call('GET', '/api/auth/me', { headers })).status).toBe(401);
    }
    // The planted cookie has the longer path, and comes first.
    const { request } = await page
      .context()
      .newPage()
      .then(async (other) => {
        const asked = other.waitForRequest(/\/api\/auth\/me$/);
        await other.goto(plane.url);
        await seeHeading(other, 'Networks');
        return { request: await asked };
      });
    expect((await request.allHeaders()).cookie).toMatch(/^cpn_session=cpu_A+; cpn_session=cpu_/);
    const other = page.context().pages()[1] as Page;
    await other.getByRole('button', { name: 'Log out' }).click();
    await logIn(other);
    await seeHeading(other, 'Networks');
  });

  test('is not used by a page of another port of the host, by form or by script', async () => {
    const attack = `<h1>attack</h1>
      <iframe name="one"></iframe><iframe name="other"></iframe>
      <form method="post" target="one" enctype="text/plain" action="${plane.url}/api/networks">
        <input name='{"name":"forged","private_cidr":"10.250.0.0/24","description":"' value='"}'></form>
      <form method="post" target="other" action="${plane.url}/api/auth/logout"></form>`;
    const neighbour = createServer(
      (_, reply) => void reply.writeHead(200, { 'content-type': 'text/html' }).end(attack),
    );
    await new Promise<void>((resolve) => neighbour.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void neighbour.close());
    const page = await openLoggedIn(plane, '', {}, /./);
    await seeHeading(page, 'Networks');
    const other = await page.context().newPage();
    await other.goto(`http://127.0.0.1:${(neighbour.address() as AddressInfo).port}/`);
    const statuses: [string, number][] = [];
    other.on('response', (response) => statuses.push([response.request().method(), response.status()]));
    await other.evaluate(`(async () => {
      const body = '{"name":"forged","private_cidr":"10.250.0.0/24"}';
      for (const path of ['networks', 'auth/logout', 'auth/login'])
        await fetch('${plane.url}/api/' + path, { method: 'POST', mode: 'no-cors', credentials: 'include', body }).catch(() => null);
      for (const form of document.forms) form.submit();
    })()`);
    await expect.poll(() => statuses.filter(([method]) => method === 'POST').length).toBe(5);
    expect(statuses.filter(([, status]) => status < 400)).toEqual([]);
    const networks = (await plane.call('GET', '/api/networks', { token: plane.token })).body.data;
    expect(networks.map(({ name }: { name: string }) => name)).not.toContain('forged');
    await page.reload();
    await seeHeading(page, 'Networks');
  });

  test.each([
    '#//evil.test',
    '#/\\evil.test',
    '#https://evil.test',
    '#javascript:alert(1)',
    '?next=//evil.test#/audit',
  ])('begins at the console, also where the address is %s', async (address) => {
    const { page } = await openTab();
    await page.goto(`${plane.url}/${address}`);
    await logIn(page);
    await page.getByRole('button', { name: 'Log out' }).waitFor();
    expect(new URL(page.url()).origin).toBe(plane.url);
  });

  test('that ends elsewhere leads to the login, and then back to the same page', async () => {
    const page = await openLoggedIn(plane);
    await goTo(page, '#/audit', 'Audit');
    await page.context().clearCookies();
    await seeHeading(page, 'Log in to cpn');
    await page.getByText('Your session ended.').waitFor();
    await logIn(page);
    await seeHeading(page, 'Audit');
  });

  test('ends and begins in all windows of a browser at once, and ends what waits', async () => {
    const network = await addNetwork();
    const page = await openLoggedIn(plane);
    const other = await page.context().newPage();
    const ended: string[] = [];
    other.on('requestfailed', (request) => ended.push(new URL(request.url()).pathname));
    await other.goto(`${plane.url}/#/networks/${network}/events`);
    await seeHeading(other, `net-${ranges}: events`);
    const [events] = await Promise.all([
      other.waitForRequest(/\/events\?.*after=/),
      addPeer(network, { name: 'web-9' }),
    ]);
    await page.getByRole('button', { name: 'Log out' }).click();
    await seeHeading(other, 'Log in to cpn');
    await other.getByText('Your session ended.').waitFor();
    await expect.poll(() => ended).toContain(new URL(events.url()).pathname);
    await logIn(page);
    await seeHeading(other, `net-${ranges}: events`);
    await addPeer(network, { name: 'web-10' });
    await other.getByRole('link', { name: 'web-10' }).first().waitFor();
  });

  test('works below a path of a proxy', async () => {
    const proxy = createServer((asked, reply) => {
      const path = asked.url?.replace(/^\/vpn\/cpn/, '') ?? '/';
      const { method, headers } = asked;
      const sent = forward(plane.url + path, { method, headers }, (answer) => {
        reply.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(reply);
      });
      sent.on('error', () => reply.destroy());
      reply.on('close', () => sent.destroy());
      asked.pipe(sent);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      proxy.closeAllConnections();
      proxy.close();
    });
    const { page } = await openTab();
    await page.goto(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}/vpn/cpn/`);
    await logIn(page);
    await seeHeading(page, 'Networks');
    expect((await page.context().cookies()).map(({ path }) => path)).toEqual(['/vpn/cpn/']);
    await page.getByRole('button', { name: 'Log out' }).click();
    await seeHeading(page, 'Log in to cpn');
  });
});

test('a network is made, changed and deleted', async () => {
  const page = await openLoggedIn(plane);
  await page.getByRole('button', { name: 'Create a network' }).click();
  await page.getByLabel('Name').fill('shop');
  await page.getByLabel('Range').fill('10.200.0.1/16');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByText(/^✕ Range /).waitFor();
  await page.getByLabel('Range').fill('10.200.0.0/16');
  await page.keyboard.press('Enter');
  await seeHeading(page, 'shop: overview');
  await page.getByRole('button', { name: 'Change the network' }).click();
  await page.getByLabel('Name').fill('store');
  await page.getByLabel('Routes').fill('192.168.7.0/24');
  await page.getByRole('button', { name: 'Save' }).click();
  await seeHeading(page, 'store: overview');
  await page.getByText('none: hosts do not reach this route').waitFor();
  await page.getByRole('button', { name: 'Delete the network' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('This network was deleted at').waitFor();
  await page.getByText('All hosts have taken their tunnel down.').waitFor();
  await page.getByRole('link', { name: 'Networks' }).click();
  await seeHeading(page, 'Networks');
  expect(await row(page, 'store').count()).toBe(0);
});

test('the audit shows what is done elsewhere', async () => {
  const page = await openLoggedIn(plane, '#/audit');
  await seeHeading(page, 'Audit');
  const network = await addNetwork();
  await page.getByText(`network net-${ranges} (${network})`).waitFor();
});

test('a key gives the one command to paste, and the host appears when it joins', async () => {
  const network = await addNetwork();
  const page = await openLoggedIn(plane, `#/networks/${network}/add-host`);
  await page.getByLabel('What joins?').selectOption('connector');
  await page.getByLabel('Name').fill('edge');
  await page.getByRole('button', { name: 'Make a key' }).click();
  const text = await readText(page);
  expect(text).toMatch(/^sudo cpn join --api http:\/\/127\.0\.0\.1:\d+ --type connector$/);
  expect(await page.locator('pre').nth(1).textContent()).toMatch(/^cpn_[\w-]+$/);
  await page.getByRole('button', { name: 'cloud-init' }).click();
  const [, token = ''] = /content: (cpn_\S+)/.exec(await readText(page)) ?? [];
  await enroll(plane, token, { name: 'edge-7', peer_type: 'connector' });
  await page.getByText(/edge-7 joined with 10\./).waitFor();
  await goTo(page, `#/networks/${network}/keys`, /enrolment keys/);
  await page.getByText('There is no key that a host can use.').waitFor();
});

test('a command is for the address that the host reaches, and goes where it needs another key', async () => {
  const page = await openLoggedIn(plane, `#/networks/${await addNetwork()}/add-host`);
  const loopback = page.getByText('Other hosts do not reach this address; type the one that they use.');
  await loopback.waitFor();
  await page.getByLabel('Name').fill('web-1');
  const address = page.getByLabel('Address of the control plane');
  await address.fill('cp.example.net');
  const create = page.getByRole('button', { name: 'Make a key' });
  await create.click();
  await page.getByText('✕ Address of the control plane must be a URL such as https://cp.example.net.').waitFor();
  await address.fill('http://203.0.113.1:8787/');
  await create.click();
  // The second block is the key.
  const command = page.locator('pre').first();
  await command.waitFor();
  expect(await loopback.count()).toBe(0);
  expect(await command.textContent()).toMatch(/ --api http:\/\/203\.0\.113\.1:8787 --insecure-http --type origin$/);
  await address.fill("https://cp.example.net/';x");
  expect(await command.textContent()).toMatch(/ --api 'https:\/\/cp\.example\.net\/'\\'';x' --type origin$/);
  await address.fill('');
  await page.getByText('✕ Correct the address of the control plane or the endpoint').waitFor();
  expect(await command.count()).toBe(0);
  await address.fill('https://cp.example.net');
  await command.waitFor();
  const endpoint = page.getByLabel('Endpoint');
  await endpoint.fill("203.0.113.7:51820';x");
  await page.getByText('✕ Correct the address of the control plane or the endpoint').waitFor();
  await create.click();
  await page.getByText('✕ Endpoint must be HOST:PORT, such as 203.0.113.22:51820.').waitFor();
  await endpoint.fill('203.0.113.7:51820');
  await create.click();
  await command.waitFor();
  expect(await command.textContent()).toMatch(/ --type origin --endpoint 203\.0\.113\.7:51820$/);
  await page.getByLabel('What joins?').selectOption('a laptop');
  expect(await command.count()).toBe(0);
  expect(await endpoint.count()).toBe(0);
  await create.click();
  await command.waitFor();
  await page.getByLabel('Name').fill('web-2');
  expect(await command.count()).toBe(0);
});

test('a command is selected where the browser has no clipboard, and nothing covers it', async () => {
  const page = await openLoggedIn(plane, `#/networks/${await addNetwork()}/add-host`);
  // As over plain http.
  await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
  await page.getByLabel('Name').fill('web-1');
  await page.getByRole('button', { name: 'Make a key' }).click();
  const text = await readText(page);
  await page.getByRole('button', { name: 'Copy' }).first().click();
  await page.getByText('The command is selected. Press Ctrl+C to copy it.').waitFor();
  expect(await page.evaluate('String(getSelection())')).toBe(text);
  expect(await page.locator('.announcement p').count()).toBe(0);
});

test('what is wrong with a field is said once, there', async () => {
  const page = await openLoggedIn(plane, `#/networks/${await addNetwork()}/add-host`);
  await page.getByRole('button', { name: 'Make a key' }).click();
  await page.getByText('✕ Name must not be empty.').waitFor();
  expect(await page.locator('p.problem').allTextContents()).toEqual(['✕ Name must not be empty.']);
  expect(await page.getByLabel('Name').evaluate((element) => element.matches(':focus'))).toBe(true);
});

test('a phone is enrolled by a key pair that never leaves the page', async () => {
  const network = await addNetwork();
  await addPeer(network, { name: 'edge', peer_type: 'connector', endpoint: '203.0.113.1:51820' });
  const page = await openLoggedIn(plane, `#/networks/${network}/add-host`);
  const sent: string[] = [];
  page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`));
  await page.getByLabel('What joins?').selectOption('phone');
  await page.getByLabel('Name').fill('my phone');
  await page.getByRole('button', { name: 'Enrol the phone' }).click();
  await page.getByRole('img', { name: 'The tunnel of my phone as a QR code' }).waitFor();
  const config = await readText(page);
  const [, privateKey = ''] = /PrivateKey = (\S+)/.exec(config) ?? [];
  const own = Buffer.from(nacl.scalarMult.base(Buffer.from(privateKey, 'base64'))).toString('base64');
  expect(sent.filter((text) => text.includes(own))).toHaveLength(1);
  expect(sent.filter((text) => text.includes(privateKey))).toEqual([]);
  const picture = join(makeFolder(), 'code.png');
  await page.getByRole('img').screenshot({ path: picture });
  const { stdout } = await run(['zbarimg', '--quiet', '--raw', '-Sdisable', '-Sqrcode.enable', picture]);
  expect(stdout.trim()).toBe(config.trim());
  const { body } = await plane.call('GET', `/api/networks/${network}`, { token: plane.token });
  const [edge, phone] = body.data.peers;
  expect([phone.name, phone.public_key, phone.peer_type]).toEqual(['my phone', own, 'admin_device']);
  expect(config).toContain(`PublicKey = ${edge.public_key}\nAllowedIPs = ${body.data.private_cidr}\n`);
  expect(phone).toMatchObject({ via: 'connectors', profile: { connector: edge.id } });
});

/** A network with so many servers that have an endpoint. */
async function addServers(count: number): Promise<number> {
  const [template, network] = [await addNetwork(), await addNetwork()];
  const id = await addPeer(template, { name: 'web', endpoint: '203.0.113.10:51820' });
  await withDatabase(plane.dataDir, async (db) => {
    const peer = await db.selectFrom('peers').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    const { id: _, ...common } = peer;
    const servers = Array.from({ length: count }, (_unused, at) => ({
      ...common,
      ...{ network_id: network, name: `web-${at}`, label: `web-${at}`, public_key: publicKey() },
      address: `10.${ranges}.${10 + Math.floor(at / 250)}.${1 + (at % 250)}`,
      token_hash: `hash-${network}-${at}-`.padEnd(43, 'A'),
    }));
    for (let at = 0; at < servers.length; at += 50) {
      const some = servers.slice(at, at + 50);
      await db.insertInto('peers').values(some).execute();
    }
  });
  return network;
}

test.each([20, 300])(
  'a phone of a network with %i peers gets a code for a camera, or all peers as a file, and is enrolled once',
  async (count) => {
    const network = await addServers(count);
    await addPeer(network, { name: 'edge', peer_type: 'connector', endpoint: '203.0.113.1:51820' });
    const page = await openLoggedIn(plane, `#/networks/${network}/add-host`, {}, /ERR_FAILED/);
    await page.getByLabel('What joins?').selectOption('phone');
    await page.getByLabel('Name').fill('small');
    await page.getByText('One peer in the file').waitFor();
    // The reply to the first enrolment is lost.
    await page.route(
      '**/api/networks/enroll',
      async (route) => {
        await route.fetch();
        await route.abort();
      },
      { times: 1 },
    );
    await page.getByRole('button', { name: 'Enrol the phone' }).click();
    await page.getByText('may have enrolled the phone').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    const code = page.getByRole('img', { name: 'The tunnel of small as a QR code' });
    await code.waitFor();
    const [, , modules] = ((await code.getAttribute('viewBox')) ?? '').split(' ').map(Number);
    expect((await code.boundingBox())?.width).toBeGreaterThanOrEqual(4 * (modules ?? Number.NaN));
    const config = await readText(page);
    expect([config.length < 310, config.match(/\[Peer\]/g)?.length]).toEqual([true, 1]);
    await takePicture(page, `phone-of-${count}`);
    const picture = join(makeFolder(), 'code.png');
    await code.screenshot({ path: picture });
    const { stdout } = await run(['zbarimg', '--quiet', '--raw', '-Sdisable', '-Sqrcode.enable', picture]);
    expect(stdout.trim()).toBe(config.trim());
    expect(await saveFile(page, 'small.conf')).toBe(config);

    await page.getByRole('button', { name: 'Add another host' }).click();
    await page.getByLabel('Name').fill('large');
    await page.getByLabel('How does it reach the network?').selectOption('all');
    await page.getByText('too many for a QR code: you get a file.').waitFor();
    await page.getByRole('button', { name: 'Enrol the phone' }).click();
    await page.getByText('Import the file with the WireGuard app').waitFor();
    expect(await page.getByRole('img').count()).toBe(0);
    const large = await saveFile(page, 'large.conf');
    expect([large, large.match(/\[Peer\]/g)?.length]).toEqual([await readText(page), count + 1]);

    const { body } = await plane.call('GET', `/api/networks/${network}`, { token: plane.token });
    const phones = body.data.peers.filter(({ peer_type: type }: { peer_type: string }) => type === 'admin_device');
    expect(phones.map(({ name, public_key }: { name: string; public_key: string }) => [name, public_key])).toEqual(
      [
        ['small', config],
        ['large', large],
      ].map(([name, text]) => [name, publicKeyIn(text as string)]),
    );
  },
);

/** The public key of the private key in a wg-quick text. */
function publicKeyIn(config: string): string {
  const [, privateKey = ''] = /PrivateKey = (\S+)/.exec(config) ?? [];
  return Buffer.from(nacl.scalarMult.base(Buffer.from(privateKey, 'base64'))).toString('base64');
}

/** Downloads a file of the page. */
async function saveFile(page: Page, name: string): Promise<string> {
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: `Download ${name}` }).click();
  const saved = await download;
  expect(saved.suggestedFilename()).toBe(name);
  const path = join(makeFolder(), name);
  await saved.saveAs(path);
  return readFileSync(path, 'utf8');
}

test('a phone that would reach nothing is not enrolled, and the page of one has no command to type on it', async () => {
  const network = await addNetwork();
  const page = await openLoggedIn(plane, `#/networks/${network}/add-host`);
  await page.getByLabel('What joins?').selectOption('phone');
  await page.getByText('No peer has an endpoint, so a phone reaches none.').waitFor();
  expect(await page.getByRole('button', { name: 'Enrol the phone' }).count()).toBe(0);
  const connector = await addPeer(network, { name: 'edge', peer_type: 'connector', endpoint: '203.0.113.1:51820' });
  const profile = { connector, routes: [] };
  const phone = await addPeer(network, { name: 'tablet', peer_type: 'admin_device', profile });
  await goTo(page, `#/networks/${network}/peer/${phone}`, /a peer/);
  await page.getByText('tablet has not connected yet.').waitFor();
  expect(await page.getByText('systemctl').count()).toBe(0);
  const path = `/api/networks/${network}/peers/${connector}`;
  await plane.call('PATCH', path, { token: plane.token, body: { endpoint: '203.0.113.9:51820' } });
  await page.getByText('outdated: edge is at 203.0.113.9:51820, and the profile has 203.0.113.1:51820').waitFor();
  await takePicture(page, 'phone-outdated');
});

test('a peer is found, renamed, suspended, resumed and removed', async () => {
  const network = await addNetwork();
  await addPeer(network, { name: 'web-1' });
  await addPeer(network, { name: 'edge-1', peer_type: 'connector', endpoint: '203.0.113.1:51820' });
  const page = await openLoggedIn(plane, `#/networks/${network}/peers`);
  await page.getByLabel('Search').fill('203.0.113 CONNECTOR');
  await page.getByText('1 of 2 peers').waitFor();
  await page.getByRole('button', { name: 'Change edge-1' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('web-1');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByText(/^✕ Name /).waitFor();
  await dialog.getByLabel('Name').fill('edge-2');
  await dialog.getByLabel('Priority').fill('7');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await row(page, 'edge-2').getByText('all routes, priority 7').waitFor();
  const bulk = page.getByRole('toolbar', { name: 'Selected peers' });
  const runOnEdge = async (action: string) => {
    await page.getByLabel('Select edge-2').check();
    await bulk.getByRole('button', { name: action }).click();
    await dialog.getByRole('button', { name: action }).click();
    await dialog.waitFor({ state: 'detached' });
  };
  await runOnEdge('Suspend');
  await row(page, 'edge-2').getByText('suspended just now').waitFor();
  await page.getByRole('link', { name: 'edge-2' }).click();
  await page.getByText('It is suspended: no host talks to it').waitFor();
  await page.goBack();
  await runOnEdge('Resume');
  await row(page, 'edge-2').getByText('suspended').waitFor({ state: 'detached' });
  await runOnEdge('Remove');
  await page.getByText('0 of 1 peers').waitFor();
});

test('a peer that waits is approved after a look at its fingerprint, and is in no bulk action that resumes', async () => {
  const network = await addNetwork();
  const approval = { token: plane.token, body: { approval: 'required' } };
  expect((await plane.call('PATCH', `/api/networks/${network}`, approval)).status).toBe(200);
  await addPeer(network, { name: 'laptop', public_key: `${'A'.repeat(42)}8=` });
  const page = await openLoggedIn(plane, `#/networks/${network}/peers`);
  const laptop = row(page, 'laptop');
  await laptop.getByText('waits since just now').waitFor();
  await page.getByLabel('Select laptop').check();
  const bulk = page.getByRole('toolbar', { name: 'Selected peers' });
  await bulk.getByRole('button', { name: 'Remove' }).waitFor();
  expect(await bulk.getByRole('button', { name: 'Resume' }).count()).toBe(0);
  await page.getByRole('link', { name: 'laptop' }).click();
  await page.getByText('It waits for the approval of an owner or admin.').waitFor();
  await page.getByRole('button', { name: 'Approve laptop' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(Array(8).fill('0000').join(' ')).waitFor();
  await dialog.getByRole('button', { name: 'Approve' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByText('It waits for the approval').waitFor({ state: 'detached' });
});

test('peers are sorted, filtered and searched, and the view survives a reload and the way back', async () => {
  const network = await addNetwork();
  for (const name of ['Zoë', 'web-1', 'edge-1']) {
    await addPeer(network, { name, ...(name === 'edge-1' && { peer_type: 'connector' }) });
  }
  const page = await openLoggedIn(plane, `#/networks/${network}/peers`);
  const names = () => page.getByRole('rowheader').allTextContents();
  await page.getByText('3 of 3 peers').waitFor();
  expect(await names()).toEqual(['edge-1', 'web-1', 'Zoë (zoe)']);
  await page.getByRole('button', { name: 'Name' }).click();
  expect(await names()).toEqual(['Zoë (zoe)', 'web-1', 'edge-1']);
  expect(await page.getByRole('columnheader', { name: 'Name' }).getAttribute('aria-sort')).toBe('descending');
  await page.getByLabel('Type', { exact: true }).selectOption('connector');
  await page.getByText('1 of 3 peers').waitFor();
  await page.getByRole('button', { name: 'Show all' }).click();
  await page.getByLabel('Search').fill('zoe');
  await page.getByText('1 of 3 peers').waitFor();
  await page.reload();
  await page.getByText('1 of 3 peers').waitFor();
  expect(await page.getByLabel('Search').inputValue()).toBe('zoe');
  await page.getByRole('link', { name: 'Zoë' }).click();
  await page.getByRole('heading', { name: 'Zoë' }).waitFor();
  await page.goBack();
  await page.getByText('1 of 3 peers').waitFor();
  expect(await names()).toEqual(['Zoë (zoe)']);
});

test('several peers are suspended, given an expiry and removed with one confirmation, and one that fails is named', async () => {
  const network = await addNetwork({ routes: ['192.168.77.0/24'] });
  await addPeer(network, { name: 'edge-1', peer_type: 'connector' });
  const ids = [await addPeer(network, { name: 'web-1' }), await addPeer(network, { name: 'web-2' })];
  const page = await openLoggedIn(plane, `#/networks/${network}/peers`);
  await page.getByText('3 of 3 peers').waitFor();
  const bulk = page.getByRole('toolbar', { name: 'Selected peers' });
  const dialog = page.getByRole('dialog');
  await page.getByLabel('Select all that are shown').check();
  await bulk.getByRole('button', { name: 'Set the expiry' }).click();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByText('Days until they expire is required.').waitFor();
  await dialog.getByLabel('Days until they expire').fill('90');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await row(page, 'web-2')
    .getByText(/^expires in (89|90) days$/)
    .waitFor();
  await page.getByLabel('Select all that are shown').check();
  await bulk.getByRole('button', { name: 'Remove' }).click();
  await dialog.getByText('edge-1, web-1, web-2').waitFor();
  await dialog.getByText('192.168.77.0/24 has no connector then').waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await takePicture(page, 'remove-peers');
  const failing = `**/api/networks/${network}/peers/${ids[0]}`;
  await page.route(failing, (route) => route.fulfill({ status: 409, json: { message: 'the peer is locked' } }));
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await dialog.getByText('1 peer stayed as before. web-1: The peer is locked.').waitFor();
  await page.unroute(failing);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('1 of 1 peers').waitFor();
  await bulk.getByText('1 peer selected').waitFor();
});

test('a peer page has key, addresses, and when and by which key it enrolled', async () => {
  const network = await addNetwork();
  const id = await addPeer(network, { name: 'web-1', endpoint: '203.0.113.7:51820' });
  const page = await openLoggedIn(plane, `#/networks/${network}/peer/${id}`);
  const { body } = await plane.call('GET', `/api/networks/${network}`, { token: plane.token });
  const [{ public_key, address }] = body.data.peers;
  for (const text of [public_key, address, '203.0.113.7:51820']) await page.getByText(text, { exact: true }).waitFor();
  await page.getByText('just now with the key rack').waitFor();
  expect(await page.locator('dd time').first().getAttribute('title')).toMatch(/^\d+ \w+ \d{4}, [\d:]{8} UTC$/);
});

test('the relay is marked in the list of peers, on its own page and above the routes', async () => {
  const network = await addNetwork({ routes: ['192.168.50.0/24'] });
  const connector = (number: number) =>
    addPeer(network, { name: `edge-${number}`, peer_type: 'connector', endpoint: `203.0.113.${number}:51820` });
  const [first, second] = [await connector(1), await connector(2)];
  const page = await openLoggedIn(plane, `#/networks/${network}/peers`);
  await row(page, 'edge-1').getByText('relay, all routes').waitFor();
  await row(page, 'edge-2').getByText('all routes', { exact: true }).waitFor();
  await goTo(page, `#/networks/${network}/peer/${first}`, /a peer/);
  await page.getByText('hosts without an endpoint reach each other through it').waitFor();
  await goTo(page, `#/networks/${network}`, /net-/);
  const line = (name: string) => page.getByText(`Hosts without an endpoint reach each other through ${name}.`);
  await line('edge-1').waitFor();
  const path = `/api/networks/${network}/peers/${first}`;
  await plane.call('PATCH', path, { token: plane.token, body: { withdrawn: [`10.${ranges}.0.0/16`] } });
  await line('edge-2').waitFor();
  await goTo(page, `#/networks/${network}/events`, /net-|events/);
  await page.getByText('edge-2 relays: edge-1 is out of service').waitFor();
  await goTo(page, `#/networks/${network}/peer/${second}`, /a peer/);
  await page.getByText('hosts without an endpoint reach each other through it').waitFor();
});

test('the audit is searched, filtered and exported, with names for ids', async () => {
  const name = `audited-${ranges}`;
  const network = await addNetwork({ name });
  await addPeer(network, { name: '=cmd()' });
  const page = await openLoggedIn(plane, '#/audit');
  await page.getByLabel('Search').fill('=cmd()');
  await page.getByLabel('Action', { exact: true }).selectOption('peers');
  await expect.poll(() => page.getByRole('row').count()).toBe(2);
  await row(page, '=cmd()').getByText(`network: ${name} (${network})`).waitFor();
  await page.reload();
  await expect.poll(() => page.getByRole('row').count()).toBe(2);
  const save = async (kind: string) => {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: `Export as ${kind}` }).click(),
    ]);
    const path = join(makeFolder(), kind);
    await file.saveAs(path);
    return [file.suggestedFilename(), readFileSync(path, 'utf8')] as const;
  };
  const [csvName, csv] = await save('CSV');
  expect(csvName).toMatch(/^cpn-audit-[\d-]+\.csv$/);
  expect(csv.split('\r\n')).toHaveLength(3);
  expect(csv).toContain(`"peer","'=cmd()"`);
  const [, json] = await save('JSON');
  expect(JSON.parse(json)).toMatchObject([{ action: 'peer.enroll', target: { name: '=cmd()' } }]);
  await page.getByLabel('Search').fill('of nothing');
  await page.getByText('No entry matches.').waitFor();
});

test('while a reply takes long the page says so, the button is busy, and a second click does nothing', async () => {
  const network = await addNetwork();
  const page = await openLoggedIn(plane, `#/networks/${network}/keys`);
  await seeHeading(page, /keys/);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const posts: string[] = [];
  await page.route(/\/api\/(users|networks)$/, async (route) => {
    if (route.request().method() === 'POST') posts.push(route.request().url());
    await held;
    await route.fallback();
  });
  await page.evaluate("location.hash = '#/users'");
  await page.getByRole('status').filter({ hasText: 'Loading …' }).waitFor();
  await page.evaluate("location.hash = '#/networks'");
  await page.getByRole('button', { name: 'Create a network' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('slow');
  await dialog.getByLabel('Range').fill('10.250.0.0/24');
  const create = dialog.getByRole('button', { name: 'Create' });
  await create.dblclick();
  await create.click({ force: true });
  expect(await create.getAttribute('aria-disabled')).toBe('true');
  expect(await findBarriers(page)).toEqual([]);
  release();
  await seeHeading(page, 'slow: overview');
  expect(posts).toHaveLength(1);
});

test('a dialog closes with Escape and gives the focus back', async () => {
  const network = await addNetwork();
  await addPeer(network, { name: 'web-1' });
  const page = await openLoggedIn(plane, `#/networks/${network}/peers`);
  const button = page.getByRole('button', { name: 'Change web-1' });
  await button.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Change web-1' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(await button.evaluate((element) => element.matches(':focus'))).toBe(true);
});

test('a viewer renames and removes its own device', async () => {
  const network = await addNetwork();
  const self_enroll = { roles: ['viewer'], limit: 1, reauth_hours: 24 };
  await plane.call('PATCH', `/api/networks/${network}`, { token: plane.token, body: { self_enroll } });
  const user = { email: 'devices@example.net', password: 'a long enough password', role: 'viewer' };
  const current_password = owner.password;
  await plane.call('POST', '/api/users', { token: plane.token, body: { ...user, current_password } });
  const { body } = await plane.call('POST', '/api/auth/login', { body: user });
  const asked = { token: body.data.access_token, body: {} };
  const key = (await plane.call('POST', `/api/networks/${network}/own-devices`, asked)).body.data.enrollment_token;
  await enroll(plane, key, { name: 'laptop', peer_type: 'admin_device' });

  const { page } = await openTab();
  await page.goto(plane.url);
  await logIn(page, user);
  await seeHeading(page, 'Networks');
  await goTo(page, '#/account', 'Account');
  await row(page, 'laptop').getByText('active').waitFor();
  await page.getByRole('button', { name: 'Rename laptop' }).click();
  await page.getByLabel('New name of laptop').fill('travel');
  await page.getByRole('button', { name: 'Rename', exact: true }).click();
  await row(page, 'travel').waitFor();
  await page.getByRole('button', { name: 'Remove travel' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByText('There is no device of yours.').waitFor();
  const { data } = (await plane.call('GET', `/api/networks/${network}/peers`, { token: plane.token })).body;
  expect(data).toEqual([]);
});

test('a user is limited to a network, sees no other, and limits a token', async () => {
  const names = { label: 'limited-one', other: 'limited-other' };
  for (const name of Object.values(names)) {
    const body = { name, private_cidr: '10.99.0.0/24' };
    expect((await plane.call('POST', '/api/networks', { token: plane.token, body })).status).toBe(201);
  }
  const user = { email: 'limited@example.net', password: 'a password of twelve or more' };
  const { page } = await openTab();
  await page.goto(plane.url);
  await logIn(page, owner);
  await goTo(page, '#/users', 'Users');
  await page.getByRole('button', { name: 'Create a user' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('E-mail address').fill(user.email);
  await dialog.getByLabel('Password', { exact: true }).fill(user.password);
  await dialog.getByLabel('Role').selectOption('admin');
  await dialog.getByLabel('Limit to some networks').check();
  await dialog.getByLabel(names.label).check();
  await dialog.getByRole('button', { name: 'Create' }).click();
  await row(page, user.email).getByText(names.label).waitFor();

  const { page: own } = await openTab();
  await own.goto(plane.url);
  await logIn(own, user);
  await row(own, names.label).waitFor();
  expect(await own.getByText(names.other).count()).toBe(0);
  expect(await own.getByRole('button', { name: 'Create a network' }).count()).toBe(0);
  expect(await own.getByRole('link', { name: /^(Users|Audit)$/ }).count()).toBe(0);
  await goTo(own, '#/account', 'Account');
  await own.getByText(`You are limited to networks: ${names.label}.`).waitFor();
  await own.getByLabel('Name of the token').fill('limited-token');
  await own.getByLabel('Limit to some networks').check();
  await own.getByLabel(names.label).check();
  await own.getByRole('button', { name: 'Make a token' }).click();
  const token = await readText(own);
  await row(own, 'limited-token').getByText(names.label).waitFor();
  const { networks } = (await plane.call('GET', '/api/auth/me', { token })).body.data;
  expect(networks).toEqual([expect.any(Number)]);

  await page.getByRole('button', { name: `Change the role of ${user.email}` }).click();
  expect(await dialog.getByLabel(names.label).isChecked()).toBe(true);
  await dialog.getByLabel('Limit to some networks').uncheck();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await row(page, user.email).getByText('all').waitFor();
});

test('a user changes the password, and makes and revokes a token', async () => {
  const user = { email: 'member@example.net', password: 'a password of twelve or more' };
  await plane.call('POST', '/api/users', {
    token: plane.token,
    body: { ...user, role: 'member', current_password: owner.password },
  });
  const { page } = await openTab();
  await page.goto(plane.url);
  await logIn(page, user);
  await plane.call('POST', '/api/auth/login', { body: { ...user, device_name: 'laptop' } });
  await seeHeading(page, 'Networks');
  expect(await page.getByRole('link', { name: 'Users' }).count()).toBe(0);
  await goTo(page, '#/account', 'Account');
  await row(page, 'laptop').waitFor();
  await page.getByLabel('Name of the token').fill('deploy');
  await page.getByRole('button', { name: 'Make a token' }).click();
  const token = await readText(page);
  expect((await plane.call('GET', '/api/auth/me', { token })).body.data.email).toBe(user.email);
  await page.getByRole('button', { name: 'Revoke deploy' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('There is no token.').waitFor();
  const created_at = new Date(Date.now() - 6 * 60_000).toISOString();
  await withDatabase(plane.dataDir, (db) => db.updateTable('sessions').set({ created_at }).execute());
  await page.getByLabel('Name of the token').fill('ci');
  await page.getByRole('button', { name: 'Make a token' }).click();
  await page.getByText(/^✕ Your password is required/).waitFor();
  const form = page.locator('form').filter({ has: page.getByLabel('Name of the token') });
  await form.getByLabel('Your password').fill(user.password);
  await page.getByRole('button', { name: 'Make a token' }).click();
  await row(page, 'ci').waitFor();
  await page.getByLabel('Current password').fill('not this one');
  await page.getByLabel('New password').fill('short');
  await page.getByRole('button', { name: 'Change the password' }).click();
  await page.getByText(/^✕ New password /).waitFor();
  await page.getByLabel('Current password').fill(user.password);
  await page.getByLabel('New password').fill('another password that is long');
  await page.getByRole('button', { name: 'Change the password' }).click();
  await page.getByText('The password is changed.').waitFor();
  await page.getByText('Revoked tokens: ci.').waitFor();
  // Sooner than the next poll.
  await row(page, 'laptop').waitFor({ state: 'detached', timeout: 5000 });
  await page.getByRole('button', { name: 'Log out' }).click();
  await logIn(page, { ...user, password: 'another password that is long' });
  await seeHeading(page, 'Account');
});

test('markup in names and descriptions is text', async () => {
  const canary = '<img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}"\'><b>';
  const name = `${canary}`.slice(0, 100);
  const network = await addNetwork({ name, description: canary });
  const peer = await addPeer(network, { name, peer_type: 'connector' });
  await makeKey(plane, plane.token, network, { name, max_uses: 3 });
  await plane.call('POST', '/api/auth/tokens', {
    token: plane.token,
    body: { name, current_password: owner.password },
  });
  await plane.call('POST', '/api/auth/login', { body: { ...owner, device_name: canary } });
  const page = await openLoggedIn(plane);
  const places = [
    ...['#/networks', `#/networks/${network}`, `#/networks/${network}/peers`, `#/networks/${network}/keys`],
    ...[`#/networks/${network}/events`, `#/networks/${network}/peer/${peer}`, '#/audit', '#/account'],
  ];
  for (const place of places) {
    await page.goto(`${plane.url}/${place}`);
    await page.getByText('<img src=x onerror=alert(1)>').first().waitFor();
    expect(await page.locator('main img, main script, main b').count()).toBe(0);
  }
});

test('control, bidirectional and invisible characters of names are shown as U+FFFD, and stay in what is sent', async () => {
  const name = 'web\u202e1-bew\u3164\u2800\u0007';
  const network = await addNetwork({ name, description: name });
  const peer = await addPeer(network, { name, peer_type: 'connector' });
  await makeKey(plane, plane.token, network, { name, max_uses: 3 });
  const page = await openLoggedIn(plane);
  const places = [
    ...['#/networks', `#/networks/${network}`, `#/networks/${network}/peers`, `#/networks/${network}/keys`],
    ...[`#/networks/${network}/events`, `#/networks/${network}/peer/${peer}`, '#/audit'],
  ];
  for (const place of places) {
    await page.goto(`${plane.url}/${place}`);
    await page.getByText('web\ufffd1-bew\ufffd\ufffd\ufffd').first().waitFor();
    await untilRead(page);
    const shown = await page.evaluate<string>(
      `document.title + document.body.innerText + [...document.querySelectorAll('*')].flatMap((element) =>
        [...element.attributes].filter(({ name }) => name !== 'value').map(({ value }) => value)).join()`,
    );
    expect([place, /[\p{Cf}\u3164\u2800]/u.test(shown), shown.includes('\u0007')]).toEqual([place, false, false]);
  }
  await page.goto(`${plane.url}/#/networks/${network}/peers`);
  await page.getByRole('button', { name: /^Change web/ }).click();
  expect(await page.getByRole('dialog').getByLabel('Name').inputValue()).toBe(name);
});

test('the policy lets in no code of the page, nothing from elsewhere, and no frame', async () => {
  const { page, problems } = await openTab();
  await page.goto(plane.url);
  await seeHeading(page, 'Log in to cpn');
  await page.evaluate(`
    const script = document.createElement('script');
    script.textContent = 'globalThis.isBroken = true';
    const image = document.createElement('img');
    image.src = 'http://127.0.0.1:9/x.png';
    document.body.append(script, image);
    document.body.insertAdjacentHTML('beforeend', '<p style="color: red" onclick="alert(1)">x</p>');
  `);
  expect(await page.evaluate("'isBroken' in globalThis")).toBe(false);
  await expect.poll(() => problems.filter((text) => /Content Security Policy/.test(text)).length).toBeGreaterThan(3);
  (problems as string[]).length = 0;
});

test('of 1,000 peers only those on the screen are made, and all are found', async () => {
  const [template, network] = [await addNetwork(), await addNetwork()];
  await addPeer(template);
  await withDatabase(plane.dataDir, async (db) => {
    const peer = await db.selectFrom('peers').selectAll().where('network_id', '=', template).executeTakeFirstOrThrow();
    const { id: _, ...common } = peer;
    const peers = Array.from({ length: 1000 }, (_unused, at) => ({
      ...common,
      network_id: network,
      name: `web-${at}`,
      label: `web-${at}`,
      address: `10.${ranges}.${10 + Math.floor(at / 250)}.${1 + (at % 250)}`,
      public_key: publicKey(),
      token_hash: `hash-${network}-${at}-`.padEnd(43, 'A'),
    }));
    for (let at = 0; at < peers.length; at += 50) {
      const some = peers.slice(at, at + 50);
      await db.insertInto('peers').values(some).execute();
    }
  });
  const page = await openLoggedIn(plane);
  await seeHeading(page, 'Networks');
  await goTo(page, `#/networks/${network}/peers`, /peers/);
  await page.getByText('1000 of 1000 peers').waitFor();
  expect(await page.getByRole('row').count()).toBeLessThan(80);
  await takePicture(page, 'peers-of-1000');
  await page.getByRole('button', { name: 'Change web-1', exact: true }).click();
  await page.keyboard.press('Escape');
  const region = page.getByRole('region', { name: 'Peers' });
  await region.evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await row(page, 'web-999').waitFor();
  expect(await page.getByRole('row').count()).toBeLessThan(80);
  await page.getByLabel('Search').fill('web-500');
  await page.getByText('1 of 1000 peers').waitFor();
  await row(page, 'web-500').waitFor();
});

test('axe-core finds nothing on each page, in light and dark colours', async () => {
  const network = await addNetwork({ name: 'office-of-all', routes: [`192.168.${ranges}.0/24`] });
  await addPeer(network, { name: 'edge-1', peer_type: 'connector', endpoint: '203.0.113.1:51820' });
  await addPeer(network, { name: 'web-1' });
  await makeKey(plane, plane.token, network);
  const { page } = await openTab();
  await page.goto(plane.url);
  await seeHeading(page, 'Log in to cpn');
  const check = (name: string) => checkLook(page, name);
  await check('login');
  await logIn(page);
  await seeHeading(page, 'Networks');
  await check('networks');
  await page.getByRole('button', { name: 'Create a network' }).click();
  await check('create-network');
  await page.keyboard.press('Escape');
  await goTo(page, `#/networks/${network}`, /overview/);
  await check('network');
  await goTo(page, `#/networks/${network}/peers`, /peers/);
  await check('peers');
  await page.getByRole('button', { name: 'Change edge-1' }).click();
  await check('change-peer');
  await page.keyboard.press('Escape');
  await goTo(page, `#/networks/${network}/add-host`, /add a host/);
  await page.getByLabel('Name').fill('web-2');
  await page.getByRole('button', { name: 'Make a key' }).click();
  await page.getByText('Waiting for the host.').waitFor();
  await check('add-host');
  await page.getByLabel('What joins?').selectOption('phone');
  await page.getByLabel('Name').fill('phone');
  await page.getByRole('button', { name: 'Enrol the phone' }).click();
  await page.getByRole('img').waitFor();
  await check('add-phone');
  await goTo(page, `#/networks/${network}/keys`, /enrolment keys/);
  await check('keys');
  await goTo(page, '#/users', 'Users');
  await check('users');
  await goTo(page, '#/audit', 'Audit');
  await check('audit');
  await goTo(page, '#/account', 'Account');
  await check('account');
  await goTo(page, '#/nowhere', 'There is no such page');
  await check('no-page');
});

test.each([360, 1280, 3840])('no page is wider than a screen of %i pixels', async (width) => {
  const network = await addNetwork({ name: `a name of a network that is quite long-${width}` });
  await addPeer(network, { name: 'a-name-of-a-peer-that-is-quite-long-as-names-of-cloud-machines-are.example.net' });
  const page = await openLoggedIn(plane, '', { viewport: { width, height: 800 } });
  await seeHeading(page, 'Networks');
  const places = ['', `/networks/${network}`, `/networks/${network}/peers`, `/networks/${network}/add-host`];
  for (const place of [...places, '/users', '/audit', '/account']) {
    await page.goto(`${plane.url}/#${place}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await untilRead(page);
    const { scrollWidth, clientWidth } = await page.evaluate<Record<string, number>>(
      '({ scrollWidth: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth })',
    );
    expect([place, scrollWidth]).toEqual([place, clientWidth]);
    if (width === 360) expect([place, await findBarriers(page)]).toEqual([place, []]);
  }
  await takePicture(page, `account-${width}`);
});
