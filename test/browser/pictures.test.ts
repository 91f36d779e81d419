import { afterAll, beforeAll, expect, test } from 'vitest';
import { withDatabase } from '../control-plane/databases.ts';
import { closePlane, makeNetwork } from '../control-plane/harness.ts';
import { goTo, openConsole, openLoggedIn, takePicture, untilRead } from './browser.ts';
import { officeRoute, populate } from './populate.ts';

let plane: Awaited<ReturnType<typeof openConsole>>;
const networks = new Map<number, { readonly id: number; readonly peer: number | null }>();
const sizes = [0, 3, 8, 300] as const;

beforeAll(async () => {
  plane = await openConsole();
  for (const [at, count] of sizes.entries()) {
    const routes = count > 3 ? [officeRoute, '192.168.60.0/24'] : count > 0 ? [officeRoute] : [];
    const fields = { name: `site-of-${count}`, private_cidr: `10.${90 + at}.0.0/16`, routes };
    const id = await makeNetwork(plane, plane.token, fields);
    const peers = await withDatabase(plane.dataDir, (db) => populate(db, id, count));
    networks.set(count, { id, peer: peers[4]?.id ?? peers[0]?.id ?? null });
  }
});
afterAll(() => closePlane(plane));

test.each([360, 1280, 2560])('pictures at %i pixels, with 0, 3, 8 and 300 peers', async (width) => {
  const page = await openLoggedIn(plane, '', { viewport: { width, height: 900 } });
  const look = async (name: string, hash: string, heading: RegExp) => {
    await goTo(page, hash, heading);
    await untilRead(page);
    await takePicture(page, `site-${name}-${width}`);
    const [wide, seen] = await page.evaluate<number[]>(
      '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
    );
    expect([name, wide]).toEqual([name, seen]);
    const clipped = await page.evaluate<string[]>(
      '[...document.querySelectorAll(".table:not(.long)")].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.ariaLabel)',
    );
    expect([name, clipped]).toEqual([name, []]);
  };
  await look('networks', '#/networks', /Networks/);
  for (const [count, { id, peer }] of networks) {
    await look(`overview-${count}`, `#/networks/${id}`, /overview/);
    if (count > 0) await page.getByRole('img', { name: /^received: mean .*; sent: mean / }).waitFor();
    if (count === 0 || count === 3) continue;
    await look(`peers-${count}`, `#/networks/${id}/peers`, /peers/);
    await look(`events-${count}`, `#/networks/${id}/events`, /events/);
    await look(`rules-${count}`, `#/networks/${id}/rules`, /: rules/);
    await look(`keys-${count}`, `#/networks/${id}/keys`, /keys/);
    if (peer !== null && count === 8) await look(`peer-${count}`, `#/networks/${id}/peer/${peer}`, /a peer/);
  }
  await look('audit', '#/audit', /Audit/);
  await look('users', '#/users', /Users/);
  await look('account', '#/account', /Account/);
  await page.getByRole('button', { name: 'Log out' }).click();
  await look('login', '', /Log in/);
});
