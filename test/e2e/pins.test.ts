import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { identityOf, proveKey } from '../../src/core/crypto/identity.ts';
import { makeKeyPair } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { LossMeter } from '../faults/loss-meter.ts';
import { readSessions } from '../faults/sessions.ts';
import { builtProgram } from '../lab/built-program.ts';
import { type ControlPlane, type Joined, makeKey, startControlPlane } from '../lab/control-plane.ts';
import { type Daemon, type LogLine, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { Owner } from '../lab/owner.ts';
import { patiently, plan, status } from './office.ts';

/** A host that follows the network, with the enrolment key that it joined by. */
interface Follower {
  readonly host: Host;
  readonly daemon: Daemon;
  readonly key: string;
}

describe('a peer whose key is changed at the control plane', { timeout: 120_000 }, () => {
  let lab: Lab;
  let controlPlane: ControlPlane;
  let database: Host;
  let joined: Joined;
  /** One that accepts changed keys, and one that holds its peers to the pinned ones. */
  let loose: Follower;
  let tight: Follower;

  const pair = () => makeKeyPair(randomBytes(32));
  const stranger = pair().publicKey;

  beforeAll(async () => {
    lab = await Lab.start({ commandServers: true });
    controlPlane = await startControlPlane(lab);
    await controlPlane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24']);
    database = await lab.addHost('database', { address: '203.0.113.10/24' });
    joined = (await join(database, await makeKey(controlPlane, 'office', 'database'))).joined;
    loose = await follow('loose', '203.0.113.11');
    tight = await follow('tight', '203.0.113.12', '--pin', 'strict');
    // It has no daemon: its network is about to remove it.
    await database.cpn(['reconcile']);
    await eventually('the loose one has the tight one', async () => (await keysOf(loose.host)).length === 2);
    for (const { host } of [loose, tight])
      expect(await host.ping(joined.address, patiently)).toMatchObject({ received: 1 });
  }, 90_000);
  afterAll(() => lab?.stop());

  async function join(host: Host, key: string, ...flags: string[]) {
    const endpoint = ['--endpoint', `${host.address}:51820`];
    const api = ['--api', controlPlane.url, '--insecure-http'];
    const argv = ['join', '-', ...api, '--name', host.name, ...endpoint, '--wait', '0', '--json', ...flags];
    const { stdout, stderr } = await host.cpn(argv, { input: key });
    return { joined: JSON.parse(stdout) as Joined, stderr };
  }

  async function follow(name: string, address: string, ...flags: string[]): Promise<Follower> {
    const host = await lab.addHost(name, { address: `${address}/24` });
    const key = await makeKey(controlPlane, 'office', name);
    await join(host, key, ...flags);
    const daemon = await startDaemon(host, '--interval', '3600');
    await eventually('the daemon waits for updates', async () => (await status(host)).sync.mode === 'push');
    return { host, daemon, key };
  }

  /** Changes the host at the control plane, as an attacker there does, and as the host itself does. */
  async function change(...fields: string[]): Promise<void> {
    const place = `/api/networks/${joined.network.id}/peers/${joined.peer.id}`;
    await controlPlane.cpn(['api', 'PATCH', place, ...fields.flatMap((field) => ['--field', field])]);
  }

  const keysOf = async (host: Host) => [...(await readSessions(host)).keys()];
  const escaped = (text: string) => text.replace(/[+]/g, '\\+');
  const isWarning = ({ level }: LogLine) => level === 40;
  const healthy = async ({ host }: Follower) =>
    (await host.cpn(['status', '--check'], { allowFailure: true })).exitCode;
  const shown = async ({ host }: Follower) => {
    const { peers, warnings } = await status(host);
    const { pin, public_key, claimed_public_key } = peers.find(({ id }: { id: number }) => id === joined.peer.id);
    return { pin, public_key, claimed_public_key, warnings };
  };

  test('is used and reported, or held without the loss of a packet, until a user accepts it', async () => {
    expect([await healthy(loose), await healthy(tight)]).toEqual([0, 0]);
    await using flow = await LossMeter.start(tight.host, joined.address);
    await change(`public_key=${stranger}`);

    const said = `changed without a signed proof: key ${stranger} instead of ${joined.public_key}`;
    const facts = { peer: joined.peer.id, name: 'database', address: joined.address, known_key: joined.public_key };
    for (const { daemon } of [loose, tight]) {
      const line = await daemon.awaitLog('another key', isWarning);
      expect(line).toMatchObject({ ...facts, claimed_key: stranger });
    }
    expect(await keysOf(loose.host)).toContain(stranger);
    expect(await keysOf(loose.host)).not.toContain(joined.public_key);
    expect(await shown(loose)).toEqual({
      pin: 'changed',
      public_key: stranger,
      claimed_public_key: stranger,
      warnings: [expect.stringContaining(`${said}; using the new values`)],
    });
    expect(await shown(tight)).toEqual({
      pin: 'held',
      public_key: joined.public_key,
      claimed_public_key: stranger,
      warnings: [expect.stringContaining(`${said}; keeping the pinned values`)],
    });
    expect([await healthy(loose), await healthy(tight)]).toEqual([3, 3]);
    const { stdout } = await tight.host.cpn(['status']);
    expect(stdout).toMatch(
      /\ndatabase .*\n {2}held: key \S+ instead of \S+; if that is right, "cpn accept 10\.77\.0\.1 cpn0"\n/,
    );

    // The next maps bring nothing new of this peer: no change, and a change of others.
    expect(await tight.host.cpn(['reconcile'])).toMatchObject({ stderr: expect.stringContaining(said) });
    const owner = new Owner(controlPlane);
    await owner.addStranger(joined.network.id, 'newcomer', '203.0.113.99:51820');
    for (const { host } of [loose, tight]) {
      await eventually('the new peer is in the map', async () => (await keysOf(host)).length === 3);
    }
    // The daemon saves what it applied a moment later.
    await eventually('nothing is left to change', async () => (await plan(tight.host)).exitCode === 0);
    expect((await shown(tight)).public_key).toBe(joined.public_key);
    for (const { daemon } of [loose, tight]) expect(daemon.log.filter(isWarning)).toHaveLength(1);

    const { sent, lost } = await flow.stop();
    expect(sent).toBeGreaterThan(20);
    expect(lost).toBe(0);
  });

  test('is held or used from one join to the next, according to --pin', async () => {
    const tightened = await join(loose.host, loose.key, '--pin', 'strict');
    expect(tightened.stderr).toContain('keeping the pinned values');
    expect(await loose.host.ping(joined.address, patiently)).toMatchObject({ received: 1 });
    await join(loose.host, loose.key, '--pin', 'report');
    expect(await keysOf(loose.host)).toContain(stranger);
    const { exitCode, stderr } = await loose.host.cpn(
      ['join', '-', '--pin', 'x', '--api', controlPlane.url, '--insecure-http'],
      {
        input: loose.key,
        allowFailure: true,
      },
    );
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('--pin "x" must be one of report, strict')]);
  });

  test('has the changed fields, once they are accepted', async () => {
    const command = `stty rows 40 cols 200; exec ${await builtProgram()} accept database`;
    const person = tight.host.spawn(['script', '-qefc', command, '/dev/null'], {
      env: { SHELL: '/bin/sh', TERM: 'xterm' },
      holdInput: true,
    });
    await person.waitForLine(/Accept the new key and address of database in cpn0\?/);
    person.writeInput('n\r');
    const refused = await person.endWithin(20_000);
    expect(refused.exitCode).toBe(1);
    expect(refused.stdout).toMatch(
      new RegExp(`pinned .*${escaped(joined.public_key)}[^]*claimed .*${escaped(stranger)}`),
    );
    expect(await keysOf(tight.host)).toContain(joined.public_key);

    for (const { host } of [loose, tight]) {
      const { stdout } = await host.cpn(['accept', '--yes', 'database', '--json']);
      expect(JSON.parse(stdout)).toMatchObject({ interface: 'cpn0', accepted: true, public_key: stranger });
      expect(await keysOf(host)).toContain(stranger);
      expect(await keysOf(host)).not.toContain(joined.public_key);
    }
    expect(await shown(tight)).toEqual({ pin: 'ok', public_key: stranger, claimed_public_key: null });
    expect([await healthy(loose), await healthy(tight)]).toEqual([0, 0]);
    await tight.daemon.awaitLog('accepted', ({ msg }) => msg === 'the mismatch of a peer with its pin was accepted');

    const again = await tight.host.cpn(['accept', '--yes', joined.address, 'office']);
    expect(again.stderr).toContain('nothing to accept: database matches its pin in cpn0');
    const unknown = await tight.host.cpn(['accept', '--yes', 'absent'], { allowFailure: true });
    expect([unknown.exitCode, unknown.stderr]).toEqual([2, expect.stringContaining('there is no peer "absent"')]);
  });

  test('is taken in silence, where the host itself proved the key', async () => {
    const file = path(database.stateDir, 'cpn0.json');
    const { identity, keySerial } = JSON.parse(await readFile(file, 'utf8'));
    const { publicKey } = pair();
    const { serial, signature } = proveKey(identityOf(new Secret(identity)), publicKey, new Date(), keySerial);
    const warned = [loose, tight].map(({ daemon }) => daemon.log.filter(isWarning).length);
    await change(`public_key=${publicKey}`, `key_proof[serial]=${serial}`, `key_proof[signature]=${signature}`);
    for (const { daemon, host } of [loose, tight]) {
      await daemon.awaitLog('the new key', ({ key, level }) => key === publicKey && level === 30);
      expect(await keysOf(host)).toContain(publicKey);
    }
    expect(await shown(tight)).toEqual({ pin: 'ok', public_key: publicKey, claimed_public_key: null });
    expect([await healthy(loose), await healthy(tight)]).toEqual([0, 0]);
    expect([loose, tight].map(({ daemon }) => daemon.log.filter(isWarning).length)).toEqual(warned);
  });
});
