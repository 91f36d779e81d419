import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { closePlane, enroll, makeKey, makeNetwork } from '../control-plane/harness.ts';
import { openConsole, openLoggedIn } from './browser.ts';

let plane: Awaited<ReturnType<typeof openConsole>>;
let ranges = 0;
beforeAll(async () => {
  plane = await openConsole();
});
afterAll(() => closePlane(plane));

const addNetwork = async () => {
  ranges += 1;
  return makeNetwork(plane, plane.token, { name: `net-${ranges}`, private_cidr: `10.${ranges}.0.0/16` });
};

async function addPeer(network: number, name: string): Promise<void> {
  const { status } = await enroll(plane, await makeKey(plane, plane.token, network), { name });
  expect(status).toBe(201);
}

const isWait = ({ headers }: IncomingMessage) => headers.prefer !== undefined;

/** A proxy before the control plane, over HTTP/1.1. `answer` may answer a request itself, and returns true then. */
async function openProxy(answer: (asked: IncomingMessage, reply: ServerResponse) => boolean = () => false) {
  /** The long polls that wait, by their path. */
  const waiting = new Set<string>();
  const proxy = createServer((asked, reply) => {
    if (answer(asked, reply)) return;
    const { method, headers, url = '/' } = asked;
    if (isWait(asked)) waiting.add(url);
    const sent = request(plane.url + url, { method, headers }, (answered) => {
      reply.writeHead(answered.statusCode ?? 500, answered.headers);
      answered.pipe(reply);
    });
    sent.on('error', () => reply.destroy());
    reply.on('close', () => {
      if (isWait(asked)) waiting.delete(url);
      sent.destroy();
    });
    asked.pipe(sent);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, waiting };
}

const open = async (first: Page, url: string) => {
  const page = await first.context().newPage();
  await page.goto(url);
  return page;
};
const see = (page: Page, peer: string) => page.getByRole('link', { name: peer }).first().waitFor();

test('three windows over HTTP/1.1 have a connection for each click, and all follow changes', async () => {
  const proxy = await openProxy();
  const network = await addNetwork();
  const other = await addNetwork();
  const at = `#/networks/${network}/peers`;
  const first = await openLoggedIn({ ...plane, url: proxy.url }, at);
  await addPeer(network, 'web-1');
  await see(first, 'web-1');
  await expect.poll(() => proxy.waiting.size).toBeGreaterThan(0);
  // The other windows read nothing by their own clocks.
  const [second, third] = [await open(first, 'about:blank'), await open(first, 'about:blank')];
  for (const page of [second, third]) {
    await page.clock.install();
    await page.goto(`${proxy.url}/${at}`);
    await see(page, 'web-1');
    await page.clock.pauseAt(Date.now() + 60_000);
  }
  await addPeer(network, 'web-2');
  for (const page of [first, second, third]) await see(page, 'web-2');
  const fourth = await open(first, `${proxy.url}/#/networks/${other}`);
  await fourth.getByRole('heading', { level: 1, name: `net-${ranges}` }).waitFor();
  expect(proxy.waiting.size).toBeLessThanOrEqual(3);
  // A window that is closed gives its place to another one.
  await first.close();
  await expect
    .poll(
      async () => {
        for (const page of [second, third]) await page.clock.runFor(5000);
        return [...proxy.waiting].some((path) => path === `/api/networks/${network}`);
      },
      { timeout: 60_000 },
    )
    .toBe(true);
  await addPeer(network, 'web-3');
  for (const page of [second, third]) await see(page, 'web-3');
});

test.each([504, 408, 0])('a wait that a proxy ends with %i is no outage', async (status) => {
  let ended = 0;
  const proxy = await openProxy((asked, reply) => {
    if (!isWait(asked)) return false;
    ended += 1;
    if (status === 0) reply.destroy();
    else reply.writeHead(status, { 'content-type': 'text/html', connection: 'close' }).end('<h1>gateway</h1>');
    return true;
  });
  const network = await addNetwork();
  const expected = /^Failed to load resource/;
  const page = await openLoggedIn({ ...plane, url: proxy.url }, '', {}, expected);
  await page.evaluate(`
    globalThis.problems = [];
    new MutationObserver(() => problems.push(...[...document.querySelectorAll('.problem')].map((line) => line.textContent)))
      .observe(document.body, { childList: true, subtree: true, characterData: true });
    location.hash = '#/networks/${network}/peers';
  `);
  await expect.poll(() => ended).toBeGreaterThan(3);
  await addPeer(network, 'web-1');
  await see(page, 'web-1');
  expect(await page.evaluate('problems')).toEqual([]);
});
