import { hkdfSync, randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { fileStore } from '../../src/store/file-store.ts';
import { makeKey } from '../lab/control-plane.ts';
import { eventually } from '../lab/eventually.ts';
import type { ExecOptions, Host } from '../lab/host.ts';
import { type Office, patiently, startOffice } from './office.ts';

/** Two hosts with the network secret, and one that joined without. */
let office: Office;
let first: Host;
let second: Host;
let without: Host;
/** A host that the control plane lists as a peer, with plain WireGuard and all that the control plane has. */
let intruder: Host;

let text: string;
/** The output of every command. */
const outputs: string[] = [];
const presharedKeys = new Set<string>();
const keys = new Map<Host, string>();

beforeAll(async () => {
  office = await startOffice();
  const [a, b, c, d] = [11, 22, 33, 66];
  first = await office.lab.addHost('first', { address: `203.0.113.${a}/24` });
  second = await office.lab.addHost('second', { address: `203.0.113.${b}/24` });
  without = await office.lab.addHost('without', { address: `203.0.113.${c}/24` });
  intruder = await office.lab.addHost('intruder', { address: `203.0.113.${d}/24` });
  const page = await readFile(path(import.meta.dirname, '../../docs/hosts.md'), 'utf8');
  const [, command = 'docs/hosts.md has no such command'] = /^(.* >network-secret\))$/m.exec(page) ?? [];
  text = (await first.exec(['sh', '-c', `cd; ${command}; cat network-secret`])).stdout.trim();
}, 60_000);

afterAll(() => office?.lab.stop());

async function cpn(host: Host, args: readonly string[], options: ExecOptions = {}) {
  const outcome = await host.cpn(args, { allowFailure: true, ...options });
  outputs.push(outcome.stdout, outcome.stderr);
  return outcome;
}

async function json(host: Host, ...args: string[]) {
  return JSON.parse((await cpn(host, [...args, '--json'])).stdout).networks[0];
}

/** Joins with a key that stays the host's own, and returns the output. */
async function join(host: Host, ...flags: string[]) {
  const key = keys.get(host) ?? (await makeKey(office.controlPlane, 'office', host.name));
  keys.set(host, key);
  const endpoint = `${host.address}:51820`;
  const argv = ['join', '-', ...office.api, '--name', host.name, '--endpoint', endpoint, ...flags];
  const outcome = await cpn(host, argv, { input: key });
  expect(outcome.exitCode).toBe(0);
  return outcome;
}

async function writeSecret(host: Host, content: string, mode = 0o600): Promise<string> {
  const file = path(host.homeDir, 'secret');
  await writeFile(file, content, { mode });
  return file;
}

const reconcile = (...hosts: Host[]) => Promise.all(hosts.map((host) => cpn(host, ['reconcile'])));

const statusOf = (host: Host) => json(host, 'status');
const seenOf = async (host: Host, name: string) =>
  (await statusOf(host)).peers.find((peer: { name: string }) => peer.name === name);
const listed = async (host: Host) => {
  const { data } = JSON.parse((await office.controlPlane.cpn(['api', 'GET', '/api/networks/1'])).stdout);
  return data.peers.find(({ name }: { name: string }) => name === host.name);
};
const planOf = async (host: Host) => (await json(host, 'plan')).changes;

/** The preshared key that a host holds for another; `(none)` for none. */
async function presharedKeyOf(host: Host, other: Host): Promise<string> {
  const { public_key } = await listed(other);
  const lines = (await host.exec(['wg', 'show', 'cpn0', 'preshared-keys'])).stdout.split('\n');
  const [, key = ''] = lines.map((line) => line.split('\t')).find(([each]) => each === public_key) ?? [];
  if (key !== '(none)') presharedKeys.add(key);
  return key;
}

describe('hosts with one network secret', () => {
  it('reach each other, under a key that is the same on both, however the file came to them', async () => {
    await join(first, '--network-secret-file', path(first.homeDir, 'network-secret'));
    const { stderr } = await join(
      second,
      '--wait',
      '0',
      '--network-secret-file',
      await writeSecret(second, text, 0o644),
    );
    expect(stderr).toMatch(/can read or write .*secret.* chmod 600/);
    await reconcile(first, second);
    expect(await first.ping('10.77.0.2', patiently)).toMatchObject({ received: 1 });
    expect(await seenOf(first, 'second')).toMatchObject({ state: 'connected', secret: 'shared' });
    const key = await presharedKeyOf(first, second);
    expect(key).toMatch(/^[A-Za-z0-9+/]{43}=$/);
    expect(await presharedKeyOf(second, first)).toBe(key);
    // The tag came with the enrolment, so that no report is due.
    const audit = await office.controlPlane.cpn(['audit', '--json']);
    expect(audit.stdout).toContain('peer.enroll');
    expect(audit.stdout).not.toContain('peer.update');
  });

  it('have it in the file that plain wg-quick brings up, and repair it where it was changed', async () => {
    await first.exec(['ip', 'link', 'del', 'cpn0']);
    await first.exec(['wg-quick', 'up', 'cpn0']);
    expect(await planOf(first)).toEqual([]);
    const { public_key } = await listed(second);
    await first.exec(['wg', 'set', 'cpn0', 'peer', public_key, 'preshared-key', '/dev/null']);
    expect(await planOf(first)).toMatchObject([
      {
        ...{ action: 'update', kind: 'peer', target: public_key, reason: 'preshared key differ' },
        before: { preshared_key: null },
        after: { preshared_key: 'set' },
      },
    ]);
    await reconcile(first);
    expect(await planOf(first)).toEqual([]);
    expect(await presharedKeyOf(first, second)).toBe(await presharedKeyOf(second, first));
  });
});

describe('a host without it', () => {
  it('is reported when it joins, and by status and explain on both sides', async () => {
    const { stderr } = await join(without, '--wait', '1');
    const why =
      'first, second have a network secret and this host has none: no handshake succeeds; on this host, type: cpn set cpn0 --network-secret-file PATH, with the same file';
    expect(stderr.trimEnd().split('\n').at(-1)).toBe(`no peer answered yet: ${why}`);
    await reconcile(first, second);
    expect(await statusOf(without)).toMatchObject({
      peers: [{ secret: 'missing_here' }, { secret: 'missing_here' }],
      warnings: [why],
    });
    expect(await statusOf(first)).toMatchObject({
      peers: [{ secret: 'shared' }, { secret: 'missing_there' }],
      warnings: [
        expect.stringMatching(
          /^without has no network secret and this host has one: .*; on those hosts, type: cpn set --network-secret-file PATH/,
        ),
      ],
    });
    expect((await cpn(without, ['explain', '10.77.0.1'])).stdout).toMatch(
      /dropped at handshake: on this host, type: cpn set cpn0 --network-secret-file PATH/,
    );
  });

  it('is reported where the service lists no tags, once its handshakes come in', async () => {
    const store = fileStore({ config: first.configDir, state: first.stateDir, runtime: first.runtimeDir });
    const state = await store.read('cpn0');
    if (!state?.membership) throw new Error('the host has not joined');
    const { membership } = state;
    const peers = membership.map.peers.map(({ secretTag: _, identity: __, ...peer }) => peer);
    await store.write({ ...state, membership: { ...membership, map: { ...membership.map, peers } } });
    onTestFinished(() => store.write(state));
    expect(await without.ping('10.77.0.1')).toMatchObject({ received: 0 });
    const warned = async () => (await statusOf(first)).warnings?.[0];
    const warning = await eventually('its handshake comes in', warned);
    const seen = await seenOf(first, 'without');
    const explained = (await cpn(first, ['explain', '10.77.0.3'])).stdout;
    expect(seen).toMatchObject({ secret: 'unknown', state: 'never', latest_handshake: null });
    expect(seen.rx_bytes).toBeGreaterThan(0);
    expect(warning).toMatch(/^without began handshakes, and none was completed: .* only one side has a network secret/);
    expect(explained).toMatch(/dropped at handshake: type on every host: cpn set --network-secret-file PATH/);
  });
});

describe('a peer that the control plane invents', () => {
  let intruderKey: string;

  beforeAll(async () => {
    const privateKey = (await intruder.exec(['wg', 'genkey'])).stdout.trim();
    intruderKey = (await intruder.exec(['wg', 'pubkey'], { input: privateKey })).stdout.trim();
    // The control plane lists it with whatever is of use, even with the secret's tag.
    await office.controlPlane.host.exec(['node', '-e', enrolIntruder], {
      env: {
        URL: `${office.controlPlane.url}/api/networks/enroll`,
        BODY: JSON.stringify({
          enrollment_token: await makeKey(office.controlPlane, 'office', 'intruder'),
          name: 'intruder',
          public_key: intruderKey,
          endpoint: `${intruder.address}:51820`,
        }),
        TAG: (await listed(first)).network_secret_tag,
      },
    });
    await reconcile(first, second, without);
    const peers = await Promise.all([first, second, without].map(async (host) => ({ host, ...(await listed(host)) })));
    const config = [
      `[Interface]\nPrivateKey = ${privateKey}\nListenPort = 51820\nAddress = 10.77.0.4/24\n`,
      ...peers.map(
        (peer) =>
          `[Peer]\nPublicKey = ${peer.public_key}\nEndpoint = ${peer.endpoint}\nAllowedIPs = ${peer.address}/32\n`,
      ),
    ];
    await writeFile(path(intruder.configDir, 'wg0.conf'), config.join('\n'), { mode: 0o600 });
    await intruder.exec(['wg-quick', 'up', 'wg0']);
  });

  it('is let in by a host without the secret: the attack works', async () => {
    expect(await intruder.ping('10.77.0.3', patiently)).toMatchObject({ received: 1 });
    expect(await without.ping('10.77.0.4', patiently)).toMatchObject({ received: 1 });
    expect(await seenOf(without, 'intruder')).toMatchObject({ state: 'connected', secret: 'missing_here' });
  });

  it('gets no handshake with those that have it, whatever it derives from what the control plane lists', async () => {
    const handshakes = async (host: Host, link: string) =>
      (await host.exec(['wg', 'show', link, 'latest-handshakes'])).stdout.trim().split('\n').sort();
    const attack = async (host: Host) => {
      const { public_key, address, network_secret_tag } = await listed(host);
      const label = `cpn preshared key 1\n1\n${[public_key, intruderKey].toSorted().join('\n')}\n`;
      const guess = Buffer.from(hkdfSync('sha256', Buffer.from(network_secret_tag, 'hex'), '', label, 32));
      // Only this side begins: a peer that has just answered a handshake begins none of its own for 5 s.
      for (const input of ['', guess.toString('base64')]) {
        await intruder.exec(['wg', 'set', 'wg0', 'peer', public_key, 'preshared-key', '/dev/stdin'], { input });
        const before = (await seenOf(host, 'intruder')).rx_bytes;
        expect(await intruder.ping(address, patiently)).toMatchObject({ received: 0 });
        const seen = await seenOf(host, 'intruder');
        expect(seen).toMatchObject({ state: 'never', latest_handshake: null, secret: 'shared' });
        expect(seen.rx_bytes).toBeGreaterThan(before);
      }
      expect(await host.ping('10.77.0.4', patiently)).toMatchObject({ received: 0 });
      expect(await handshakes(host, 'cpn0')).toContain(`${intruderKey}\t0`);
    };
    await Promise.all([first, second].map(attack));
    const done = (await handshakes(intruder, 'wg0')).filter((line) => !line.endsWith('\t0'));
    expect(done.map((line) => line.split('\t')[0])).toEqual([(await listed(without)).public_key]);
  }, 120_000);

  it('does not cut the other peers off from each other', async () => {
    expect(await first.ping('10.77.0.2', patiently)).toMatchObject({ received: 1 });
  });
});

describe('a host that joins again', () => {
  it('with the secret gets a handshake, and the control plane its tag', async () => {
    expect((await listed(without)).network_secret_tag).toBeUndefined();
    const file = await writeSecret(without, `\n${text}\r\n`);
    const { stdout } = await join(without, '--json', '--network-secret-file', file);
    expect(JSON.parse(stdout)).toMatchObject({ handshake: true });
    expect((await listed(without)).network_secret_tag).toBe((await listed(first)).network_secret_tag);
    await reconcile(first, second, without);
    for (const host of [first, second, without]) {
      const { peers, warnings } = await statusOf(host);
      expect(peers.map(({ secret }: { secret: string }) => secret)).toEqual(['shared', 'shared', 'shared']);
      expect(warnings).toBeUndefined();
      expect(await planOf(host)).toEqual([]);
    }
    expect(await without.ping('10.77.0.2', patiently)).toMatchObject({ received: 1 });
  });

  it('under a new key has a new preshared key with every peer', async () => {
    const before = await presharedKeyOf(first, without);
    await cpn(without, ['leave', '--yes']);
    keys.delete(without);
    await join(without, '--wait', '0', '--network-secret-file', `file:${path(without.homeDir, 'secret')}`);
    await reconcile(first);
    const after = await presharedKeyOf(first, without);
    expect(after).not.toBe(before);
    expect(await presharedKeyOf(without, first)).toBe(after);
    const { address } = await listed(without);
    expect(await first.ping(address, patiently)).toMatchObject({ received: 1 });
  });

  it('keeps it when it joins again without the file; after "cpn set" it has none, and both sides report it', async () => {
    await join(without, '--wait', '0');
    expect(await presharedKeyOf(without, first)).not.toBe('(none)');
    const remove = ['set', '--network-secret-file', 'none'];
    expect(await cpn(without, remove)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(
        /cpn0 loses first, second, intruder within 3 minutes, .* "cpn set --network-secret-file none"/,
      ),
    });
    expect((await cpn(without, [...remove, '--dry-run'])).stderr).toContain(
      'cpn0 loses first, second, intruder within 3 minutes',
    );
    expect(await presharedKeyOf(without, first)).not.toBe('(none)');
    expect((await cpn(without, [...remove, '--yes'])).exitCode).toBe(0);
    expect(await presharedKeyOf(without, first)).toBe('(none)');
    expect((await listed(without)).network_secret_tag).toBeUndefined();
    await reconcile(first);
    expect(await seenOf(first, 'without')).toMatchObject({ secret: 'missing_there' });
  });

  it('with another file gets a warning that they differ', async () => {
    const file = await writeSecret(without, randomBytes(32).toString('base64'));
    const { stderr } = await join(without, '--wait', '0', '--network-secret-file', file);
    expect(stderr).toMatch(/no peer answered yet: first, second, intruder have another network secret than this host/);
  });
});

it('no output holds the secret, or a key derived from it', async () => {
  expect(presharedKeys.size).toBeGreaterThan(2);
  const everything = outputs.join('\n');
  expect(everything).toContain('shared');
  for (const secret of [text, Buffer.from(text).toString('base64'), ...presharedKeys]) {
    expect(everything).not.toContain(secret.slice(0, 20));
  }
});

const enrolIntruder = `
fetch(process.env.URL, {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'network-secret-tag': process.env.TAG },
  body: process.env.BODY,
}).then(async (reply) => { if (!reply.ok) throw new Error(await reply.text()); });
`;
