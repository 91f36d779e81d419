import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect, inject, onTestFinished } from 'vitest';
import { usualPasswordCost } from '../../src/control-plane/domain/passwords.ts';
import { findConsole } from '../../src/control-plane/http/console.ts';
import type { ServeOptions } from '../../src/control-plane/serve.ts';
import { openPlane, owner, type Plane } from '../control-plane/harness.ts';
import { REPOSITORY } from '../lab/built-program.ts';

/** Where the pictures of the last run with CPN_PICTURES=1 are; without it there are none. */
const pictures = join(REPOSITORY, '.cache/console');

/** Milliseconds that a page may take to show what is expected. */
const patience = 60_000;

let browser: Promise<Browser> | undefined;

/** A control plane with the built console, by the real time. The caller closes it. */
export async function openConsole(options: Partial<ServeOptions> = {}): Promise<Plane & { readonly token: string }> {
  const folder = findConsole();
  if (folder === null) throw new Error('there is no dist/console: run npm run build first');
  const passwordCost = { ...usualPasswordCost, N: 16, p: 1 };
  const plane = await openPlane({ console: folder, passwordCost, now: () => new Date(), ...options });
  const { body } = await plane.call('POST', '/api/auth/login', { body: { ...owner } });
  return { ...plane, token: body.data.access_token };
}

/** A page of a browser without cookies, and what went wrong in it. */
export interface Tab {
  readonly page: Page;
  /** Errors of scripts, and whatever the policy of the page refused. */
  readonly problems: readonly string[];
}

/** Opens an empty page, in `other` or the browser that tests share; the test fails where a script fails in it, or the policy refuses something. */
export async function openTab(
  options: BrowserContextOptions = {},
  other?: Browser,
  expected: RegExp = /^$/,
): Promise<Tab> {
  browser ??= chromium.connect(inject('chromium'));
  const context = await (other ?? (await browser)).newContext({ locale: 'en-GB', timezoneId: 'UTC', ...options });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', ({ message }) => problems.push(message));
  page.on('console', (message) => {
    // The browser reports each refusal of the API too.
    const isRefusal = /^Failed to load resource: the server responded with a status of 4/.test(message.text());
    // One header has no effect over http to another host.
    const isHttp = /^The Cross-Origin-Opener-Policy header has been ignored/.test(message.text());
    if (message.type() === 'error' && !isRefusal && !isHttp && !expected.test(message.text()))
      problems.push(message.text());
  });
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  onTestFinished(async () => {
    await context.close();
    expect(problems).toEqual([]);
  });
  return { page, problems };
}

/** Opens a page of the console with a session of the owner. `expected` are messages that the browser writes. */
export async function openLoggedIn(
  plane: Pick<Plane, 'url' | 'call'>,
  hash = '',
  options: BrowserContextOptions = {},
  expected?: RegExp,
): Promise<Page> {
  const { page } = await openTab(options, undefined, expected);
  const { headers, body } = await plane.call('POST', '/api/auth/login', {
    body: { ...owner, session_cookie: '/' },
    headers: { 'sec-fetch-site': 'same-origin' },
  });
  const [, value = ''] = /^cpn_session=([^;]+)/.exec(headers.get('set-cookie') ?? '') ?? [];
  await page.context().addCookies([{ name: 'cpn_session', value, url: plane.url, httpOnly: true, sameSite: 'Strict' }]);
  await page.addInitScript(storeKey(plane.url, body.data.session_key));
  await page.goto(`${plane.url}/${hash}`);
  return page;
}

/** A script that gives the console its half of a session, unless it has one. */
function storeKey(url: string, key: string): string {
  const name = JSON.stringify('cpn session /');
  return `if (location.origin === ${JSON.stringify(url)} && localStorage.getItem(${name}) === null)
    localStorage.setItem(${name}, ${JSON.stringify(key)});`;
}

export async function logIn(page: Page, { email, password } = owner): Promise<void> {
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}

/** Goes to another page of the console. */
export async function goTo(page: Page, hash: string, heading: string | RegExp): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  await seeHeading(page, heading);
}

/** Waits until the page has this heading, and is no longer being read. */
export async function seeHeading(page: Page, name: string | RegExp): Promise<void> {
  await page.getByRole('heading', { level: 1, name }).waitFor();
  await untilRead(page);
}

/** Waits until no part of the page is being read. */
export async function untilRead(page: Page): Promise<void> {
  await expect.poll(() => page.locator('[aria-busy="true"]').count(), { timeout: patience }).toBe(0);
}

/** Keeps a picture of the page, in a run for people who look at them. */
export async function takePicture(page: Page, name: string): Promise<void> {
  if (process.env.CPN_PICTURES !== '1') return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Of the rules that axe-core runs by default, those whose results depend on colours. */
const colorRules = ['color-contrast', 'link-in-text-block'];

/** What axe-core finds wrong with the page, each with the elements; `only` names the rules. */
export async function findBarriers(page: Page, only?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(axe);
  const options = JSON.stringify({ resultTypes: ['violations'], ...(only && { runOnly: only }) });
  const { violations } = await page.evaluate<AxeResults>(`axe.run(${options})`);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' ')}`);
}

/** Fails where axe-core finds anything in light colours, or in dark ones where colours matter. Keeps a picture of both. */
export async function checkLook(page: Page, name: string): Promise<void> {
  for (const [colorScheme, rules] of [['dark', colorRules] as const, ['light'] as const]) {
    await page.emulateMedia({ colorScheme });
    await takePicture(page, `${name}-${colorScheme}`);
    expect([name, colorScheme, await findBarriers(page, rules)]).toEqual([name, colorScheme, []]);
  }
}
