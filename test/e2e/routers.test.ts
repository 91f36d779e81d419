import { stat } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Host } from '../lab/host.ts';
import { DataCenter, lanRoute } from './data-center.ts';
import { type Cause, Routers } from './routers.ts';

/**
 * After the second cut the first connector serves again, and so takes its place back once it is no longer drained. `scripts/bench routers`
 * prints how long each takes.
 */
const causes: readonly Cause[] = ['upstream', 'upstream', 'drain', 'undrain'];
/** Pings that may be lost in a move: a multiple of what a busy machine loses. */
const most = 150;

let center: DataCenter;
let routers: Routers;
beforeAll(async () => {
  center = await DataCenter.start();
  routers = await Routers.start(center);
});
afterAll(() => center?.stop());

const check = async (host: Host, ...flags: string[]) => {
  const args = ['status', '--check', '--serving', ...flags];
  const { exitCode, stdout, stderr } = await host.cpn(args, { allowFailure: true });
  return [exitCode, stdout.trim() || stderr.trim()];
};

test('status --check --serving exits with 0 on the connector in service alone, and says why elsewhere', async () => {
  const [first, second] = routers.connectors;
  expect(await check(first, lanRoute)).toEqual([0, `${lanRoute} in service on cpn0`]);
  expect(await check(second, lanRoute)).toEqual([3, `${lanRoute} not in service: standby: edge-1 is in service`]);
  expect(await check(routers.origin, lanRoute)).toEqual([3, `${lanRoute} not in service: this host does not serve it`]);
  const other = '10.1.0.0/16';
  const reason = 'no network that this host has joined has this route';
  expect(await check(first, other)).toEqual([3, `${other} not in service: ${reason}`]);
  expect(await check(first, '192.168.50.1/24')).toEqual([2, expect.stringContaining('192.168.50.1/24')]);
  const [code, text] = await check(second, lanRoute, '--json');
  expect([code, JSON.parse(String(text))]).toEqual([
    3,
    { serving: { route: lanRoute, interface: 'cpn0', in_service: false, reason: 'standby: edge-1 is in service' } },
  ]);
});

test('the files of the routes in service are readable for every program, and nothing else is', async () => {
  const [first] = routers.connectors;
  const modeOf = async (file: string) => ((await stat(path(first.runtimeDir, file))).mode & 0o777).toString(8);
  expect(await modeOf('serving/cpn0/192.168.50.0_24')).toBe('644');
  expect([await modeOf('serving/cpn0'), await modeOf('serving'), await modeOf('')]).toEqual(['755', '755', '711']);
  const { stdout } = await first.exec(['find', first.runtimeDir, '-type', 'f', '-perm', '/077']);
  expect(stdout.trim()).toBe(`${first.runtimeDir}/serving/cpn0/192.168.50.0_24`);
});

test(`keepalived and BIRD follow the connector in service ${causes.length} times, and no TCP session ends`, {
  timeout: 900_000,
}, async () => {
  expect(await routers.readFiles()).toEqual(['1\n', '0\n']);
  let moves = 0;
  for await (const { cause, flow, from, to, lost } of routers.move(causes)) {
    expect(to).not.toBe(from);
    expect({ cause, flow, isWithin: lost <= most }).toEqual({ cause, flow, isWithin: true });
    moves += 1;
  }
  expect(moves).toBe(3 * causes.length);
  for (const session of routers.sessions) {
    const before = session.received;
    expect([session.trouble, before > 0]).toEqual([[], true]);
    await expect.poll(() => session.received).toBeGreaterThan(before);
  }
});

test('the file has 0 after the tunnel went down, and goes when the host leaves', async () => {
  const [, second] = routers.connectors;
  await center.controlPlane.cpn(['peer', 'update', 'office', 'edge-2', '--priority', '5']);
  await expect.poll(async () => (await routers.readFiles())[1], { timeout: 120_000 }).toBe('1\n');
  await center.daemon(second).stop();
  expect((await routers.readFiles())[1]).toBe('1\n');
  await second.cpn(['down', '--all']);
  expect((await routers.readFiles())[1]).toBe('0\n');
  expect(await check(second, lanRoute)).toEqual([3, `${lanRoute} not in service: the tunnel cpn0 is down`]);
  await second.cpn(['leave', '--yes', '--all', '--verify']);
  expect((await routers.readFiles())[1]).toBe('');
});
