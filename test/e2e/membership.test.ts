/** What the holder of a key or a token can do to the other members, and what a restored control plane does to them. */
import { cp, mkdir, readFile, rm } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeKey, serveControlPlane } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { Owner } from '../lab/owner.ts';
import { join, type Office, startOffice, status } from './office.ts';

let office: Office;
let origin: Host;
let incumbent: Host;

beforeAll(async () => {
  office = await startOffice();
  // It cannot be dialled, as behind a NAT.
  incumbent = await newHost('incumbent');
  await join(office, incumbent, '--type', 'connector');
  origin = await newHost('origin');
  await join(office, origin, '--endpoint', `${origin.address}:51820`, '--hosts');
}, 60_000);

afterAll(() => office?.lab.stop());

function newHost(name: string): Promise<Host> {
  return office.lab.addHost(name, { address: `203.0.113.${office.lab.hosts.size + 10}/24` });
}

const admin = async (...args: string[]) => (await office.controlPlane.cpn(args)).stdout;

/** The origin's active and standby connectors for the LAN, after a pass. */
async function connectorsOf(): Promise<(string | null)[]> {
  await origin.cpn(['reconcile']);
  const { routes } = await status(origin);
  return routes.map(({ via }: { via: string | null }) => via);
}

const peersOf = async (host: Host): Promise<string[]> =>
  (await status(host)).peers.map(({ name }: { name: string }) => name).sort();

describe('an enrolment key', () => {
  it('enrols no connector unless it was made for connectors, and the error names that', async () => {
    const host = await newHost('greedy');
    const input = await makeKey(office.controlPlane, 'office', 'greedy');
    const { exitCode, stderr } = await host.cpn(['join', '-', ...office.api, '--type', 'connector'], {
      input,
      allowFailure: true,
    });
    expect(exitCode).toBe(4);
    expect(stderr).toContain(
      'the enrolment key is for peers of type origin or admin_device, and this one is of type connector',
    );
    expect(await admin('key', 'list', 'office')).toMatch(/greedy +origin admin_device +0 of 1/);
  });
});

describe('a connector that joins', () => {
  it('takes no route from one that serves, though that one has no endpoint, until an admin gives it priority', async () => {
    const newcomer = await newHost('newcomer');
    await join(office, newcomer, '--type', 'connector', '--endpoint', `${newcomer.address}:51820`);
    expect(await connectorsOf()).toEqual(['incumbent', 'newcomer']);
    await admin('peer', 'update', 'office', 'newcomer', '--priority', '5');
    expect(await connectorsOf()).toEqual(['newcomer', 'incumbent']);
    await admin('peer', 'update', 'office', 'newcomer', '--priority', '0');
    expect(await connectorsOf()).toEqual(['incumbent', 'newcomer']);
  });
});

describe('a name', () => {
  it('that is taken gets a suffix, and join reports it', async () => {
    const host = await newHost('second');
    const input = await makeKey(office.controlPlane, 'office', 'second');
    const { stdout, stderr } = await host.cpn(['join', '-', ...office.api, '--name', 'Origin', '--wait', '0'], {
      input,
    });
    expect(stdout).toContain('as Origin-2');
    expect(stderr).toContain('the name Origin is taken in this network; this host is Origin-2');
    const { exitCode, stderr: refused } = await host.cpn(['set', '--name', 'incumbent'], { allowFailure: true });
    expect([exitCode, refused]).toEqual([4, expect.stringMatching(/"incumbent" is the name of peer \d+ already/)]);
    await host.cpn(['leave', '--yes']);
  });

  it('leads to the peer that had it first, and no other peer gets it until that peer is gone', async () => {
    const owner = new Owner(office.controlPlane);
    const network = (await status(origin)).network.id;
    const [database, taker] = [
      await owner.addStranger(network, 'db', '203.0.113.201:51820'),
      await owner.addStranger(network, 'taker', '203.0.113.202:51820'),
    ];
    const addresses = new Map((await owner.listPeers(network)).map(({ id, address }) => [id, address]));
    const lookUp = async () => {
      await origin.cpn(['reconcile']);
      const { stdout } = await origin.exec(['getent', 'ahostsv4', 'db.office.cpn.internal'], { allowFailure: true });
      return stdout.split(/\s/)[0];
    };
    expect(await lookUp()).toBe(addresses.get(database));
    await admin('peer', 'update', 'office', 'db', '--name', 'old');
    const takeName = ['peer', 'update', 'office', 'taker', '--name', 'db'];
    const { exitCode, stderr } = await office.controlPlane.host.cpn(takeName, { allowFailure: true });
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining(`remove peer "old" (${database}), or choose`)]);
    expect(await lookUp()).toBe(addresses.get(database));
    const block = await readFile(path(origin.etcDir, 'hosts'), 'utf8');
    expect(block).toContain(`${addresses.get(database)} old.office.cpn.internal db.office.cpn.internal\n`);
    await owner.removePeer(network, database);
    await admin(...takeName);
    expect(await lookUp()).toBe(addresses.get(taker));
    await owner.removePeer(network, taker);
  });
});

describe('a control plane that is restored from a backup', () => {
  it('gives hosts that were away what it has, and nothing of what was lost', { timeout: 90_000 }, async () => {
    const { host, url } = office.controlPlane;
    const data = path(host.folder, 'data');
    const copy = path(host.homeDir, 'backup.db');
    await host.cpn(['control-plane', 'backup', copy, '--data', data]);

    const lost = await newHost('lost');
    await join(office, lost, '--endpoint', `${lost.address}:51820`);
    await origin.cpn(['reconcile']);
    await admin('network', 'update', 'office', '--description', 'lost');
    await incumbent.cpn(['reconcile']);
    expect([await peersOf(origin), await peersOf(incumbent)]).toEqual([
      expect.arrayContaining(['lost']),
      expect.arrayContaining(['lost']),
    ]);

    await office.controlPlane.process.stop();
    await rm(data, { recursive: true });
    await mkdir(data, { mode: 0o700 });
    await cp(copy, path(data, 'control-plane.db'));
    const address = new URL(url).hostname;
    const again = await serveControlPlane(host, address, path(host.homeDir, 'password'), []);
    // As many changes as were lost: to the origin the revision is the one that it has.
    const fresh = await newHost('fresh');
    await join(office, fresh, '--endpoint', `${fresh.address}:51820`);
    await origin.cpn(['reconcile']);
    expect(await peersOf(origin)).toEqual(expect.arrayContaining(['fresh']));
    expect(await peersOf(origin)).not.toContain('lost');
    // The next revision would be a change to what was lost.
    await admin('network', 'update', 'office', '--description', 'later');
    await admin('network', 'update', 'office', '--description', 'and later');
    await incumbent.cpn(['reconcile']);
    expect(await peersOf(incumbent)).toEqual(
      await peersOf(origin).then((names) => names.map((name) => (name === 'incumbent' ? 'origin' : name)).sort()),
    );
    await again.stop();
  });
});
