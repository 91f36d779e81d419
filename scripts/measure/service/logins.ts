import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { serve } from '../../../src/control-plane/serve.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { findPort, logInAt, path, settingsFor } from '../../../test/control-plane/oidc/browser.ts';
import { startProvider } from '../../../test/control-plane/oidc/provider.ts';
import type { Comparison } from '../comparison.ts';

const owner = { email: 'owner@example.net', password: 'correct horse battery staple' };

/**
 * Logins by single sign-on, from the click to the first page, next to those with a password, and
 * the time from a logout at the issuer to the refusal of the session.
 */
export async function compareLogins(rounds = 20): Promise<Comparison[]> {
  const [dataDir, port] = [await mkdtemp(join(tmpdir(), 'cpn-bench-')), await findPort()];
  const provider = await startProvider(`http://127.0.0.1:${port}${path}/callback`);
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['net-admins'] });
  const server = await serve({
    ...{ host: '127.0.0.1', port, dataDir, allowPublicRoutes: false, oidc: settingsFor(provider.url) },
    ...{ owner: { email: owner.email, password: new Secret(owner.password) }, logger: pino({ level: 'silent' }) },
    ...{ publicUrls: [new URL(`http://127.0.0.1:${port}/`)], limits: { requests: 1_000_000, failedLogins: 1_000_000 } },
  });
  const office = { plane: { url: server.url }, provider };
  const read = (headers: Record<string, string>) => fetch(`${server.url}/api/networks`, { headers });
  const bySingleSignOn = async () => {
    const { headers } = await logInAt(office, 's1');
    if (!(await read(headers)).ok) throw new Error('the session of single sign-on reads nothing');
    return headers;
  };
  const byPassword = async () => {
    const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' };
    const body = JSON.stringify({ ...owner, session_cookie: '/' });
    const reply = await fetch(`${server.url}/api/auth/login`, { method: 'POST', headers, body });
    const { data } = (await reply.json()) as { data: { session_key: string } };
    const cookie = reply.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    if (!(await read({ cookie, 'session-key': data.session_key })).ok) throw new Error('the session reads nothing');
  };
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const started = performance.now();
    await work();
    return performance.now() - started;
  };
  try {
    const [ours, theirs, refusals]: [number[], number[], number[]] = [[], [], []];
    await bySingleSignOn();
    await byPassword();
    for (let round = 0; round < rounds; round += 1) {
      ours.push(await timed(bySingleSignOn));
      theirs.push(await timed(byPassword));
      const headers = await bySingleSignOn();
      refusals.push(
        await timed(async () => {
          await provider.sendLogout('s1');
          while ((await read(headers)).status !== 401);
        }),
      );
    }
    return [
      {
        ...{ what: 'a login by single sign-on, to the first page', baseline: 'with a password' },
        ...{ unit: 'ms', ours, theirs, target: null },
      },
      {
        ...{ what: 'a logout at the issuer, to the refusal of the session', baseline: '' },
        ...{ unit: 'ms', ours: refusals, theirs: [], target: { atMost: 5_000, text: '≤ 5 s' } },
      },
    ];
  } finally {
    await server.close();
    await provider.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}
