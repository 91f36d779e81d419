import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { browserOptions } from '../../../test/browser/chromium-setup.ts';
import type { Comparison } from '../comparison.ts';
import type { Server } from './changing.ts';
import { Worker } from './process.ts';
import type { Member } from './push-messages.ts';

const sizes = [10, 1000, 10_000];
const rounds = 7;

/**
 * The console in Debian's Chromium: from the start of a load with an empty cache until the matrix
 * is painted, and from a change until the page shows it. Leaves out the sizes above `peersAtMost`.
 */
export async function measureConsole(peersAtMost = Number.POSITIVE_INFINITY): Promise<Comparison[]> {
  const browser = await chromium.launch(browserOptions);
  try {
    const comparisons: Comparison[] = [];
    for (const peers of sizes.filter((size) => size <= peersAtMost)) {
      comparisons.push(...(await measureSize(browser, peers)));
    }
    return comparisons;
  } finally {
    await browser.close();
  }
}

async function measureSize(browser: Browser, peers: number): Promise<Comparison[]> {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-bench-'));
  const server: Server = new Worker('push-server.ts');
  try {
    const order = { kind: 'serve', folder, database: null, networks: 1, peers, isReporting: true } as const;
    const { url, owner, members } = await server.request(order, 'serving');
    const session = await logIn(url, owner);
    const open = async () => {
      const context = await browser.newContext();
      context.setDefaultTimeout(120_000);
      await context.addCookies([{ name: 'cpn_session', value: session.cookie, url }]);
      const key = JSON.stringify(session.key);
      await context.addInitScript(`if (location.origin === '${url}') localStorage.setItem('cpn session /', ${key});`);
      return context.newPage();
    };
    const [first, second] = members;
    if (first === undefined || second === undefined) throw new Error('there are no peers');
    const place = `${url}/#/networks/${first.network}`;
    const paints: number[] = [];
    const reports: number[] = [];
    // The first round is there to warm up.
    for (let round = 0; round <= rounds; round += 1) {
      const page = await open();
      const painted = await measurePaint(page, place);
      if (round > 0) paints.push(painted);
      if (round === rounds) {
        for (let count = 0; count < rounds; count += 1) {
          reports.push(await measureReport(page, url, first, second, count % 2 === 0 ? 'stale' : 'down'));
        }
      }
      await page.context().close();
    }
    const target = (isPromised: boolean) => (isPromised ? { atMost: 1000, text: '≤ 1 s' } : null);
    const row = (what: string, ours: number[], isPromised: boolean): Comparison => ({
      ...{ what: `${what}, ${peers} peers`, baseline: '', unit: 'ms', ours, theirs: [] },
      target: target(isPromised),
    });
    return [
      row('the matrix is painted', paints, peers <= 1000),
      row('a report until the matrix shows it', reports, peers <= 1000),
    ];
  } finally {
    await server.end({ kind: 'end' });
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The two halves of a session: the value of its cookie, and the key of its page. */
async function logIn(url: string, owner: object): Promise<{ cookie: string; key: string }> {
  const response = await fetch(`${url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
    body: JSON.stringify({ ...owner, session_cookie: '/' }),
  });
  const [, value] = /^cpn_session=([^;]+)/.exec(response.headers.get('set-cookie') ?? '') ?? [];
  if (value === undefined) throw new Error(`there is no session: ${await response.text()}`);
  const { data } = (await response.json()) as { data: { session_key: string } };
  return { cookie: value, key: data.session_key };
}

/** Milliseconds from the start of the load until cells are painted. */
async function measurePaint(page: Page, place: string): Promise<number> {
  await page.addInitScript(`
    globalThis.painted = new Promise((resolve) => {
      new MutationObserver((_, observer) => {
        if (!document.querySelector('[role=gridcell]')) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
      }).observe(document, { subtree: true, childList: true });
    });
  `);
  await page.goto(place);
  return page.evaluate<number>('globalThis.painted');
}

/** Milliseconds from the request of a host until the page has painted what it reports. */
async function measureReport(page: Page, url: string, from: Member, to: Member, path: string): Promise<number> {
  const cell = `[role=gridcell][id$="-${from.peer}-${to.peer}"]`;
  await page.evaluate(`
    globalThis.shown = new Promise((resolve) => {
      new MutationObserver((_, observer) => {
        if (!document.querySelector('${cell}')?.ariaLabel?.endsWith(': ${path}')) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(Date.now())));
      }).observe(document, { subtree: true, childList: true, attributes: true });
    });
    0;
  `);
  const sentAt = Date.now();
  const { ok, status } = await fetch(`${url}/api/networks/${from.network}/peers/${from.peer}/report`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${from.token}` },
    body: JSON.stringify({ paths: [{ peer: to.peer, path }] }),
  });
  if (!ok) throw new Error(`the report was refused with the status ${status}`);
  return (await page.evaluate<number>('globalThis.shown')) - sentAt;
}
