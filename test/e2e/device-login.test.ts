import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AdminShell, startPlane } from './admin-shell.ts';

let shell: AdminShell;
let plane: Awaited<ReturnType<typeof startPlane>>;
let home = 0;

beforeAll(async () => {
  shell = await AdminShell.open();
  plane = await startPlane(shell);
});

afterAll(async () => {
  await plane?.server.stop();
  await shell?.close();
});

const call = async (path: string, body: object, token?: string) => {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) };
  const reply = await fetch(plane.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const { data, message } = (await reply.json()) as { data: Readonly<Record<string, string>>; message?: string };
  expect([reply.status, message]).toEqual([200, undefined]);
  return data;
};

/** What the owner does in the console. */
async function decide(code: string, approve = true) {
  const { email, password } = plane;
  const { access_token } = await call('/api/auth/login', { email, password });
  return call(`/api/auth/device-codes/${code}/approval`, { approve }, access_token);
}

/** A home without a login, and without a screen. */
function newHome(): Readonly<Record<string, string>> {
  home += 1;
  return { CPN_API_URL: plane.url, XDG_CONFIG_HOME: join(shell.folder, `home-${home}`) };
}
const whoami = (env: Readonly<Record<string, string>>) => shell.cpn(['whoami'], { env });
const typed = /or open \S+#\/device\/([A-Z]{4}-[A-Z]{4})/;

describe('cpn login', () => {
  it('on a terminal without a screen shows a code, and is logged in once it is approved', async () => {
    const env = newHome();
    const { exitCode, stdout } = await shell.type(['login'], [[typed, ([, code = '']) => decide(code)]], env);
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/logged in at http\S+ as owner@example\.net, owner/)]);
    expect(stdout).toContain(`open ${plane.url}/#/device in a browser`);
    expect(stdout).not.toMatch(/cp[du]_/);
    expect((await whoami(env)).exitCode).toBe(0);
    const list = await shell.output(['token', 'list'], { env });
    expect(list).toMatch(/cpn on .* this one/);
    // The session itself is in the audit, with who approved it.
    expect(await shell.output(['audit'], { env })).toMatch(/login .*device_code/);
  });

  it('on a screen opens the page, and is logged in once the browser returns', async () => {
    const page = join(shell.folder, 'page');
    const browser = await shell.write(
      'xdg-open',
      `#!/bin/sh\nprintf %s "$1" >${page}.part && mv ${page}.part ${page}\n`,
    );
    await chmod(browser, 0o755);
    const env = { ...newHome(), DISPLAY: ':0', PATH: `${shell.folder}:${process.env.PATH}` };
    const follow = async () => {
      const url = await vi.waitFor(async () => new URL(await readFile(page, 'utf8')));
      const [, code = '', state = ''] = /^#\/device\/([A-Z-]+)\?state=([\w-]+)$/.exec(url.hash) ?? [];
      const { redirect_port: port, code: answer = '' } = await decide(code);
      const reply = await fetch(`http://127.0.0.1:${port}/?${new URLSearchParams({ code: answer, state })}`);
      expect(await reply.text()).toContain('You can close this window');
    };
    const { exitCode, stdout } = await shell.type(['login'], [[/approve the login/, follow]], env);
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/logged in at http\S+ as owner@example\.net, owner/)]);
    expect((await whoami(env)).exitCode).toBe(0);
  });

  it('waits through a restart of the control plane', async () => {
    const env = newHome();
    const login = shell.spawn(['login', '--no-browser'], { env });
    const [, code = ''] = await login.waitForLine(typed);
    await plane.server.stop();
    await login.waitForLine(/the login goes on/);
    const listen = plane.url.replace('http://', '');
    const data = join(shell.folder, 'data');
    const server = shell.spawn(['control-plane', 'serve', '--listen', listen, '--data', data]);
    await server.waitForLine(/control plane listening on/);
    plane = { ...plane, server };
    await decide(code);
    const { exitCode, stdout } = await login.endWithin(30_000);
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^logged in at/)]);
  });

  it('ends with 4 where it is refused, and by Ctrl-C without a login', async () => {
    const env = newHome();
    const refused = shell.spawn(['login', '--no-browser', '--json'], { env });
    const [, code = ''] = await refused.waitForLine(typed);
    await decide(code, false);
    expect(await refused.endWithin(10_000)).toMatchObject({
      ...{ exitCode: 4, stdout: '' },
      stderr: expect.stringMatching(/the login was refused in the console; .*run "cpn login" again/),
    });
    const stopped = shell.spawn(['login', '--no-browser'], { env });
    await stopped.waitForLine(typed);
    stopped.signal('SIGINT');
    expect((await stopped.endWithin(10_000)).exitCode).not.toBe(0);
    expect((await whoami(env)).exitCode).toBe(2);
  });

  it('without a terminal needs --email, as before', async () => {
    const failure = await shell.fail(['login'], newHome());
    expect(failure).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--email is missing') });
  });
});
