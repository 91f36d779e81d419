import { expect, test } from 'vitest';
import { logInAt } from './browser.ts';
import { openOffice } from './office.ts';

const groups = ['net-admins'];
test('a logout of a user at the issuer ends its sessions and personal tokens', async () => {
  const office = await openOffice();
  const { plane, provider } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  provider.accounts.set('s2', { email: 'bob@example.net', groups });
  const [one, two, other] = [await logInAt(office, 's1'), await logInAt(office, 's1'), await logInAt(office, 's2')];
  const { data: made } = (await plane.call('POST', '/api/auth/tokens', { headers: one.headers, body: { name: 'ci' } }))
    .body;
  await provider.sendLogout('s1');
  const me = (request: object) => plane.call('GET', '/api/auth/me', request).then(({ status }) => status);
  expect(await me({ headers: one.headers })).toBe(401);
  expect(await me({ headers: two.headers })).toBe(401);
  expect(await me({ token: made.access_token })).toBe(401);
  expect(await me({ headers: other.headers })).toBe(200);
  // The user may log in again.
  expect(await me({ headers: (await logInAt(office, 's1')).headers })).toBe(200);
});
