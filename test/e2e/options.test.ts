import { writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { crashAfter } from '../faults/crash.ts';
import { makeKey } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, plan, startOffice, status } from './office.ts';

let office: Office;
let hosts = 0;

beforeAll(async () => {
  office = await startOffice();
  const connector = await newHost('connector');
  await join(office, connector, '--type', 'connector', '--endpoint', `${connector.address}:51820`);
});

afterAll(() => office?.lab.stop());

function newHost(name: string): Promise<Host> {
  hosts += 1;
  return office.lab.addHost(name, { address: `203.0.113.${hosts + 10}/24` });
}

const show = async () => JSON.parse((await office.controlPlane.cpn(['network', 'show', 'office', '--json'])).stdout);

describe('join', () => {
  it('does as its flags say', async () => {
    const host = await newHost('particular');
    const flags = ['--interface', 'wg-office.1', '--listen-port', '40001', '--mtu', '1300', '--no-accept-routes'];
    const joined = await join(office, host, ...flags);
    expect(joined.interface).toBe('wg-office.1');
    expect(await status(host)).toMatchObject({
      interface: 'wg-office.1',
      listen_port: 40001,
      mtu: 1300,
      state: 'up',
      routes: [{ prefix: '192.168.50.0/24', state: 'refused', reason: 'not accepted' }],
    });
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
  });

  it('finds its own endpoint, and listens there', async () => {
    const host = await newHost('public');
    const { peer } = await join(office, host, '--endpoint', 'auto');
    const listed = (await show()).peers.find(({ id }: { id: number }) => id === peer.id);
    expect(listed.endpoint).toBe(`${host.address}:51820`);
    expect((await status(host)).listen_port).toBe(51820);
  });

  it('takes everything from variables, and the key from a file', async () => {
    const host = await newHost('automated');
    const file = path(host.homeDir, 'key');
    await writeFile(file, `${await makeKey(office.controlPlane, 'office', 'automated')}\n`);
    const env = {
      CPN_API_URL: office.controlPlane.url,
      CPN_INSECURE_HTTP: '1',
      CPN_ENROLLMENT_KEY: `file:${file}`,
      CPN_TYPE: 'admin_device',
      CPN_NAME: 'Zoë’s laptop 💻',
      CPN_WAIT: '0',
    };
    const joined = JSON.parse((await host.cpn(['join', '--json'], { env })).stdout);
    expect(joined.peer.name).toBe('Zoë’s laptop 💻');
    expect((await show()).peers.find(({ id }: { id: number }) => id === joined.peer.id).peer_type).toBe('admin_device');
  });

  it('refuses to be in one network twice, and leaves no second peer behind', async () => {
    const host = await newHost('twin');
    await join(office, host);
    const snapshot = async () => ({
      state: (await host.state()).replace(/lock\.pid.*/, ''),
      // Not how the others see the host, which changes by itself.
      peers: (await show()).peers.map(({ id, name, public_key, ip_address }: Record<string, unknown>) => ({
        ...{ id, name, public_key, ip_address },
      })),
    });
    const before = await snapshot();
    const key = await makeKey(office.controlPlane, 'office', 'twin');
    const again = await host.cpn(['join', '-', ...office.api], { input: key, allowFailure: true });
    expect(again.stderr).toContain('this host is in network office already, as cpn0; "cpn leave cpn0" first');
    expect(again.exitCode).toBe(2);
    expect(await snapshot()).toEqual(before);

    // The key was not spent: after its removal the host is back with it, as what it was.
    const removed = before.peers.find(({ name }: { name: string }) => name === 'twin');
    await host.cpn(['set', '--mtu', '1320', '--endpoint', `${host.address}:51999`]);
    await office.controlPlane.cpn(['peer', 'remove', 'office', String(removed.id), '--yes']);
    const { stdout } = await host.cpn(['join', '-', ...office.api, '--json', '--wait', '0'], { input: key });
    const joined = JSON.parse(stdout);
    expect(joined).toMatchObject({ interface: 'cpn0', peer: { name: 'twin' } });
    expect(joined.peer.id).not.toBe(removed.id);
    expect((await show()).peers).toContainEqual(
      expect.objectContaining({ id: joined.peer.id, public_key: joined.public_key, endpoint: `${host.address}:51999` }),
    );
    expect(await status(host)).toMatchObject({ state: 'up', mtu: 1320, listen_port: 51_999, address: joined.address });
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
    expect((await host.exec(['ip', '-br', 'link', 'show', 'type', 'tun'])).stdout).not.toContain('cpn1');
  });
});

describe('a tunnel that is up', () => {
  it('stays when a repeated join with other options fails, and a pass makes it right again', async () => {
    const host = await newHost('stubborn');
    const key = await makeKey(office.controlPlane, 'office', 'stubborn');
    await host.cpn(['join', '-', ...office.api, '--wait', '0'], { input: key });
    const taken = host.spawn([
      'node',
      '-e',
      "require('dgram').createSocket('udp4').bind(40055, () => console.log('bound'))",
    ]);
    await taken.waitForLine(/bound/);
    const again = ['join', '-', ...office.api, '--wait', '0', '--listen-port', '40055'];
    const { exitCode, stderr } = await host.cpn(again, { input: key, allowFailure: true });
    expect(stderr).toContain('cpn0 cannot listen: UDP port 40055 is in use; choose another with --listen-port');
    expect(exitCode).toBe(1);
    expect((await host.exec(['ip', '-br', 'address', 'show', 'cpn0'])).stdout).toContain('10.77.0.');
    await taken.stop();
    await host.cpn(['reconcile']);
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
    expect((await status(host)).listen_port).toBe(40055);
  });
});

describe('a pass', () => {
  it('without the control plane uses the stored map, repairs the host, and reports it', async () => {
    const host = await newHost('alone');
    await join(office, host);
    await host.exec(['ip', 'route', 'del', '192.168.50.0/24', 'dev', 'cpn0', 'table', '8350']);
    await office.controlPlane.host.links[0]?.unplug();
    try {
      const { exitCode, stderr, stdout } = await host.cpn(['reconcile', '--json'], { allowFailure: true });
      expect(stderr).toMatch(/cpn0 uses the stored map: the control plane at .* is unreachable/);
      expect(JSON.parse(stdout).networks[0].changes).toMatchObject([
        { action: 'add', kind: 'route', target: '192.168.50.0/24' },
      ]);
      expect(exitCode).toBe(5);
      expect(await status(host)).toMatchObject({ drift: [], sync: { error: expect.stringContaining('unreachable') } });
    } finally {
      await office.controlPlane.host.links[0]?.restore();
    }
    expect((await host.cpn(['reconcile'])).exitCode).toBe(0);
    expect((await status(host)).sync.error).toBeUndefined();
  });

  it('reports a join that was not finished', async () => {
    const host = await newHost('interrupted');
    const key = await makeKey(office.controlPlane, 'office', 'interrupted');
    const stored = crashAfter('rename cpn0.json');
    const killed = await host.cpn(['join', '-', ...office.api], { input: key, allowFailure: true, ...stored });
    expect(killed.signal).toBe('SIGKILL');
    const { stderr } = await host.cpn(['status']);
    expect(stderr).toMatch(
      /the join of cpn0 was not finished; run "cpn join" with the same key again, or "cpn leave cpn0"/,
    );
  });
});
