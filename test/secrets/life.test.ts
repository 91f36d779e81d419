/** Secrets through the whole life of a host, with failures: they are searched for wherever a local user can read. */
import { randomBytes } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readExecs } from '../lab/exec-trace.ts';
import { HttpProxy } from '../lab/http-proxy.ts';
import { Lab } from '../lab/lab.ts';
import type { Process } from '../lab/process.ts';
import { api, Life } from './life.ts';
import { ProcessWatch } from './process-watch.ts';

let lab: Lab;
let life: Life;
let watch: ProcessWatch;
let server: Process;
let lastSteps: () => Promise<void>;
/** Which memory of the tunnel goes into a core dump. */
let dumped: string;

const insecure = ['--api', api, '--insecure-http', '--wait', '0'];
const echo = ['--api', 'http://127.0.0.1:8080', '--wait', '0'];
/** Nothing listens there. */
const nowhere = ['--api', 'http://127.0.0.1:1', '--wait', '0'];

beforeAll(async () => {
  lab = await Lab.start();
  const admin = await lab.addHost('control-plane', { address: '203.0.113.1/24' });
  const host = await lab.addHost('edge', { address: '203.0.113.11/24' });
  life = new Life(lab, host, admin);
  watch = new ProcessWatch();
  server = await serve();
  await administer();
  await failToJoin();
  await live();
}, 240_000);

afterAll(async () => {
  await watch?.end();
  await lab?.stop();
});

async function serve(): Promise<Process> {
  const { admin } = life;
  const password = await life.secretFile(admin, 'owner-password');
  const owner = ['--owner-email', 'owner@example.net', '--owner-password-file', password];
  const argv = [
    'control-plane',
    'serve',
    '--listen',
    '203.0.113.1:8787',
    '--data',
    join(admin.folder, 'data'),
    ...owner,
  ];
  const serving = await life.start(admin, argv);
  await serving.waitForLine(/listening on/);
  return serving;
}

async function administer(): Promise<void> {
  const { admin, canaries } = life;
  const as = ['login', ...insecure.slice(0, 3), '--email', 'owner@example.net', '--password-file'];
  await life.cpn(admin, [...as, await life.secretFile(admin, 'wrong-password')], { fails: true });
  await life.cpn(admin, [...as, join(admin.homeDir, 'owner-password')]);
  canaries.addText('session', JSON.parse(await readFile(join(admin.xdgConfigDir, 'cpn', 'login.json'), 'utf8')).token);
  await life.cpn(admin, ['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24']);
  const user = ['user', 'create', '--email', 'ada@example.net', '--role', 'viewer', '--password-file'];
  await life.cpn(admin, [...user, await life.secretFile(admin, 'ada-password')]);
  const token = (await life.cpn(admin, ['token', 'create', '--name', 'ci'], { gives: true })).stdout.trim();
  canaries.addText('personal token', token);
  const env = { CPN_API_TOKEN: token, CPN_API: api, CPN_INSECURE_HTTP: 'yes' };
  for (const path of ['/api/networks/1', '/api/auth/me', '/api/audit', '/nowhere']) {
    await life.cpn(admin, ['api', 'GET', path], { env, fails: path === '/nowhere' });
  }
  await life.cpn(admin, ['network', 'list'], { env: { ...env, CPN_API_TOKEN: `${token}x` }, fails: true });
  canaries.addText('wrong token', `${token}x`);
}

/** At a service that echoes each request, and at none. */
async function failToJoin(): Promise<void> {
  const { host } = life;
  const service = host.spawn(['node', join(import.meta.dirname, 'echo-service.ts')]);
  await service.waitForLine(/listening/);
  for (let answer = 0; answer < 5; answer += 1) {
    const key = await life.newKey(`echoed ${answer}`);
    await life.cpn(host, ['join', '-', ...echo, '--name', `edge-${answer}`], { input: key, fails: true });
    await life.learnState().catch(() => {});
    await life.cpn(host, ['leave', '--yes']);
    const argv = ['login', ...echo.slice(0, 2), '--email', 'owner@example.net', '--password-file'];
    await life.cpn(host, [...argv, await life.secretFile(host, `echoed-password-${answer}`)], { fails: true });
  }
  await service.stop();
  await life.cpn(host, ['join', '-', ...nowhere], { input: await life.newKey('sent nowhere'), fails: true });
  await life.cpn(host, ['leave', '--yes']);
}

/** A proxy that wants a password; the file with its URL. */
async function startProxy(): Promise<string> {
  const { admin, host, canaries } = life;
  const password = randomBytes(18).toString('hex');
  canaries.addText('password of the proxy', password);
  canaries.addText('credentials of the proxy', `user:${password}`);
  const proxy = await HttpProxy.start(admin, `BasicAuth user ${password}`);
  const refused = await life.secretFile(host, 'wrong-proxy', proxy.url.replace('//', `//user:${password}wrong@`));
  const argv = ['join', '-', ...insecure, '--proxy', `file:${refused}`];
  await life.cpn(host, argv, { input: await life.newKey('by a proxy that refuses'), fails: true });
  await life.cpn(host, ['leave', '--yes']);
  return life.secretFile(host, 'proxy', proxy.url.replace('//', `//user:${password}@`));
}

async function live(): Promise<void> {
  const { host } = life;
  const connector = ['--type', 'connector'];
  const given = await life.newKey('by stdin', ...connector);
  const proxied = ['--proxy', `file:${await startProxy()}`];
  await life.cpn(host, ['join', '-', ...insecure, ...connector, ...proxied], { input: given });
  const state = JSON.parse(await life.learnState());
  const filters =
    'for each in /proc/[0-9]*; do if grep -aq ^wireguard-go $each/cmdline; then cat $each/coredump_filter; fi; done';
  dumped = (await host.exec(['sh', '-c', filters])).stdout;
  const statePath = join(host.stateDir, 'cpn0.json');
  // As a user who received the network secret has it.
  const full = { ...state, networkSecret: randomBytes(32).toString('base64') };
  await writeFile(statePath, JSON.stringify(full));
  for (const command of ['reconcile', 'status', 'plan', 'explain']) {
    const args = command === 'explain' ? [command, '10.77.0.9'] : [command];
    for (const form of [args, [...args, '--json']]) await life.cpn(host, form, { fails: command === 'explain' });
  }
  for (const form of [['doctor'], ['doctor', '--all'], ['doctor', '--json']]) await life.cpn(host, form);
  await life.learnState();
  // A level between these and trace writes nothing that trace does not.
  for (const level of ['debug', 'fatal']) await life.cpn(host, ['reconcile'], { env: { CPN_LOG_LEVEL: level } });
  const whole = await readFile(statePath, 'utf8');
  for (const broken of [whole.slice(0, -40), whole.replace(/"enabled": ?true/, '"enabled":7'), `${whole}"`]) {
    await rm(`${statePath}.previous`, { force: true });
    await writeFile(statePath, broken);
    await life.cpn(host, ['status'], { fails: true });
  }
  await writeFile(statePath, whole);
  const daemon = await life.start(host, ['run', '--interval', '1']);
  await daemon.waitForLine(/reconciling the network/);
  await host.exec(['ip', 'link', 'delete', 'cpn0']);
  await daemon.waitForLine(/"changes"|pass/);
  await life.end(daemon, 'run');
  await life.learnState();
  await life.cpn(host, ['drain', '--force', '--timeout', '0'], { fails: true });
  lastSteps = leaveAndReturn;
}

/** In each form in which a key may be given. */
async function leaveAndReturn(): Promise<void> {
  const { host } = life;
  await life.cpn(host, ['leave', '--yes', '--verify']);
  const key = await life.newKey('by file');
  await writeFile(join(host.homeDir, 'key'), key, { mode: 0o600 });
  await life.cpn(host, ['join', `file:${join(host.homeDir, 'key')}`, ...insecure]);
  await life.learnState();
  await life.cpn(host, ['leave', '--yes']);
  await life.cpn(host, ['join', ...insecure], { env: { CPN_ENROLLMENT_KEY: await life.newKey('by environment') } });
  await life.learnState();
  await life.cpn(host, ['leave', '--yes']);
  await life.cpn(host, ['join', await life.newKey('typed'), ...insecure]);
  await life.learnState();
  await life.cpn(host, ['leave', '--yes']);
  await life.cpn(life.admin, ['audit', '--json', '--limit', '200']);
}

test('no file holds any of them but those that are there for it', async () => {
  const { host, admin, canaries } = life;
  for (const trace of life.traces) for (const exec of await readExecs(trace)) expect(exec.argv).toBeDefined();
  const found = (await canaries.findInFiles(lab.folder)).map((line) =>
    line.split(':')[0]?.slice(lab.folder.length + 1),
  );
  const places = found.filter((file) => file !== undefined && !/\/traces\/|\.json\.previous$/.test(file));
  expect(new Set(places)).toEqual(
    new Set([
      ...['edge/state/cpn0.json', 'edge/etc/wireguard/cpn0.conf'],
      ...['owner-password', 'wrong-password', 'ada-password', '.config/cpn/login.json'].map(
        (file) => `${admin.name}/home/${file}`,
      ),
      ...['wrong-proxy', 'proxy'].map((file) => `${host.name}/home/${file}`),
      `${admin.name}/tinyproxy.conf`,
      ...Array.from({ length: 5 }, (_, answer) => `${host.name}/home/echoed-password-${answer}`),
    ]),
  );
  await lastSteps();
  const left = (await canaries.findInFiles(host.folder)).filter((line) => !/\/(traces|home)\//.test(line));
  expect(left).toEqual([]);
});

test('no output of a command, a daemon or the control plane holds any of them, whatever failed', async () => {
  const backup = join(life.admin.folder, 'backup.db');
  await life.cpn(life.admin, ['control-plane', 'backup', backup, '--data', join(life.admin.folder, 'data')]);
  expect(life.canaries.find(await readFile(backup))).toEqual([]);
  await life.end(server, 'control-plane serve');
  expect(life.said.length).toBeGreaterThan(80);
  expect(life.said.map(({ text }) => text).join()).toContain('"level":');
  for (const { what, text } of life.said) {
    expect({ what, found: life.canaries.find(text) }).toEqual({ what, found: [] });
  }
});

test('no program that was started has any of them in its arguments or environment', async () => {
  const execs = (await Promise.all(life.traces.map(readExecs))).flat();
  // A secret that a user put into the environment, or typed, is in that of the program itself, and of no other.
  const own = execs.filter(({ env }) => env.some((each) => each.startsWith('CPN_LAB=')));
  const children = execs.filter((exec) => !own.includes(exec));
  const names = new Set(children.map(({ argv }) => argv[0]?.split('/').at(-1)));
  expect([...names]).toEqual(expect.arrayContaining(['ip', 'wg', 'nft']));
  expect([...names].filter((name) => !['ip', 'wg', 'nft', 'wireguard-go', 'ping', 'sh'].includes(`${name}`))).toEqual(
    [],
  );
  for (const { argv, env } of children) {
    const text = [...argv, ...env].join('\n');
    expect({ argv, found: life.canaries.find(text) }).toEqual({ argv, found: [] });
    expect(text).not.toContain('CPN_');
  }
  for (const { argv } of own) {
    expect({
      argv: argv.slice(0, 3),
      found: life.canaries.find(argv.join('\n'), ['enrolment key typed']),
    }).toMatchObject({ found: [] });
  }
});

test('no memory of the tunnel goes into a core dump, as none of the program’s does', () => {
  expect(dumped).not.toMatch(/[1-9a-f]/);
});

test('a watch of all processes never sees any of them', async () => {
  await watch.end();
  expect(watch.looks).toBeGreaterThan(100);
  const [cmdline = new Set<string>(), environ = new Set<string>()] = watch.seen.values();
  expect([...cmdline].join('\n')).toContain('wireguard-go');
  for (const text of cmdline) expect([text, life.canaries.find(text, ['enrolment key typed'])]).toEqual([text, []]);
  const others = [...environ].filter((text) => !text.includes('CPN_LAB='));
  expect(others.length).toBeGreaterThan(0);
  for (const text of others) expect([text, life.canaries.find(text)]).toEqual([text, []]);
});
