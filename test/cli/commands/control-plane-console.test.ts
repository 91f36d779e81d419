import { expect, test } from 'vitest';
import { makeFolder, startServing } from './served-process.ts';

const html = { headers: { accept: 'text/html' } };

test('the built program serves its console, and says where', async () => {
  const { url, says } = await startServing(makeFolder());
  await says(`console at ${url}/`);
  const page = await fetch(url, html);
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('src="assets/main-')]);
});

test('--no-console turns the console off', async () => {
  const { url, said } = await startServing(makeFolder(), '--no-console');
  expect((await fetch(url, html)).headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect((await fetch(`${url}/assets/any.js`)).status).toBe(404);
  expect(said()).not.toContain('console at');
});
