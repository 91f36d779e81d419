import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, startOffice, status } from './office.ts';

/** A connector that cannot load packet rules, on a host where every new interface forwards. */
let office: Office;
let router: Host;
let member: Host;
/** The flags of the connector's join. */
let joined: { readonly exitCode: number | null; readonly stderr: string };

const inLan = '192.168.50.10';

beforeAll(async () => {
  office = await startOffice();
  const { lab } = office;
  router = await lab.addHost('router', { address: '203.0.113.11/24' });
  await router.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward']);
  await (await lab.addLan(router, '192.168.50.1/24')).addHost('printer', `${inLan}/24`, { routed: true });
  member = await lab.addHost('member', { address: '203.0.113.12/24' });
  await join(office, member, '--endpoint', '203.0.113.12:51820');
  await breakNft(router);
  const key = (await office.controlPlane.cpn(['key', 'create', 'office', '--name', 'router', '--type', 'connector']))
    .stdout;
  const flags = ['--name', 'router', '--type', 'connector', '--endpoint', '203.0.113.11:51820', '--wait', '0'];
  joined = await router.cpn(['join', '-', ...office.api, ...flags], { input: key, allowFailure: true });
  await member.cpn(['reconcile']);
}, 90_000);

afterAll(() => office?.lab.stop());

/** Puts a program that fails in the place of `nft`, for this host alone. */
const breakNft = (host: Host) =>
  host.exec([
    'sh',
    '-ec',
    `printf '#!/bin/sh\\necho "no netlink today" >&2\\nexit 1\\n' >/run/nft; chmod +x /run/nft; cp "$(command -v nft)" /run/real-nft
     mount --bind /run/nft "$(readlink -f "$(command -v nft)")"`,
  ]);
const restoreNft = (host: Host) => host.exec(['sh', '-ec', 'umount --lazy "$(readlink -f "$(command -v nft)")"']);
const forwards = async () =>
  (await router.exec(['cat', '/proc/sys/net/ipv4/conf/cpn0/forwarding'])).stdout.trim() === '1';
/** The connector's withdrawn routes at the control plane. */
async function withdrawn(): Promise<unknown> {
  const { stdout } = await office.controlPlane.cpn(['network', 'show', 'office', '--json']);
  const { peers } = JSON.parse(stdout);
  return peers.find(({ name }: { name: string }) => name === 'router').withdrawn ?? [];
}
const everything = ['10.77.0.0/24', '192.168.50.0/24'];
const isForwardingWarning = (each: string) =>
  each.startsWith('the packet rules of cpn0 do not load') && each.includes('no netlink today');

describe('a connector whose packet rules do not load', () => {
  it('joins, is reachable, forwards nothing, is out of service, and reports it', async () => {
    expect(joined.exitCode).toBe(1);
    expect(joined.stderr).toContain('the packet rules of cpn0 do not load');
    expect(await member.ping('10.77.0.2', patiently)).toMatchObject({ received: 1 });
    expect(await forwards()).toBe(false);
    expect(await withdrawn()).toEqual(everything);
    const { state, warnings } = await status(router);
    expect(state).toBe('degraded');
    expect(warnings.filter(isForwardingWarning)).toHaveLength(1);
    expect((await router.cpn(['status'])).stdout).toContain('do not load');
    expect(await router.cpn(['status', '--check'], { allowFailure: true })).toMatchObject({ exitCode: 3 });
  });

  it('comes up all the same after it was down, and `up` and `reconcile` exit with 1', async () => {
    await router.cpn(['down'], { allowFailure: true });
    for (const command of ['up', 'reconcile']) {
      const { exitCode, stderr } = await router.cpn([command], { allowFailure: true });
      expect({ exitCode, stderr }, command).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining('do not load'),
      });
      expect(await forwards(), command).toBe(false);
    }
    // It has no session left, and so it begins the handshake.
    expect(await router.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
  });

  it('forwards, and is in service, once they load', async () => {
    await restoreNft(router);
    await router.cpn(['up']);
    await member.cpn(['reconcile']);
    expect(await withdrawn()).toEqual([]);
    expect(await forwards()).toBe(true);
    expect(await member.ping(inLan, patiently)).toMatchObject({ received: 1 });
    expect(await status(router)).toMatchObject({ state: 'up' });
  });
});

describe('the daemon of a connector', () => {
  let daemon: Daemon;

  beforeAll(async () => {
    daemon = await startDaemon(router, '--interval', '2');
    await eventually('it waits for updates', async () => (await status(router)).sync.mode === 'push');
  });

  it('stops forwarding when the packet rules are gone and do not load, and takes the routes out of service, but not the tunnel', async () => {
    const mark = daemon.mark();
    await breakNft(router);
    await router.exec(['/run/real-nft', 'flush', 'ruleset']);
    const { kind } = await daemon.awaitLog('why', ({ msg }) => msg === 'reconciliation failed', mark);
    expect(kind).toBe('RulesNotLoaded');
    expect(await forwards()).toBe(false);
    await eventually('the routes are out of service', async () => String(await withdrawn()) === String(everything));
    expect(await member.ping('10.77.0.2')).toMatchObject({ received: 1 });
    const { state, warnings } = await status(router);
    expect({ state, warnings: warnings.filter(isForwardingWarning).length }).toEqual({
      state: 'degraded',
      warnings: 1,
    });
    expect(daemon.since(mark).filter(({ msg }) => msg === 'drift keeps coming back')).toEqual([]);
  });

  it('forwards again by itself when they load, and puts the routes back into service', async () => {
    const mark = daemon.mark();
    await restoreNft(router);
    await daemon.awaitLog('the end of it', ({ msg }) => msg === 'reconciliation succeeds again', mark);
    expect(await forwards()).toBe(true);
    await eventually('the routes are in service', async () => String(await withdrawn()) === '');
    expect(await member.ping(inLan, patiently)).toMatchObject({ received: 1 });
    await daemon.stop();
  });
});
