import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addMissingLans, makeKey } from '../lab/control-plane.ts';
import { join, type Office, plan, startOffice } from './office.ts';

let office: Office;

beforeAll(async () => {
  office = await startOffice();
}, 60_000);

afterAll(() => office?.lab.stop());

describe('what was made on a host', () => {
  it.each([
    ['a connector', 11, ['--type', 'connector', '--endpoint', '203.0.113.11:51820']],
    ['an origin', 12, ['--type', 'origin', '--endpoint', '203.0.113.12:51820']],
    ['a laptop', 13, ['--type', 'admin_device']],
  ])('is taken back by leave, as if %s had never joined', async (name, number, flags) => {
    const host = await office.lab.addHost(name.replace(/\W/g, '-'), { address: `203.0.113.${number}/24` });
    await addMissingLans(office.controlPlane, host, 'office');
    const before = await host.state();
    await join(office, host, ...flags);
    expect(await host.state()).not.toBe(before);
    const { stderr } = await host.cpn(['leave', '--yes', '--verify']);
    expect(stderr).toContain('removed everything cpn created for it');
    const file = `${host.configDir}/cpn0.conf`;
    const searched = ['interface cpn0', 'nft table cpn_cpn0', 'block of cpn0 in the hosts file', file, 'state of cpn0'];
    for (const what of searched) expect(stderr).toContain(`no ${what}`);
    expect(await host.state()).toBe(before);
  });

  it('is removed by down but for files, and comes up again without a control plane', async () => {
    const host = await office.lab.addHost('router', { address: '203.0.113.21/24' });
    await addMissingLans(office.controlPlane, host, 'office');
    const network = async () => (await host.state()).split('# files')[0];
    const before = await network();
    await join(office, host, '--type', 'connector', '--endpoint', '203.0.113.21:51820');
    const up = await network();
    await host.cpn(['down']);
    expect(await network()).toBe(before);
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
    await host.links[0]?.unplug();
    await host.links[0]?.restore();
    await host.cpn(['up'], { env: { CPN_API_URL: 'http://127.0.0.1:1' } });
    expect(await network()).toBe(up);
  });

  it('leaves alone what was there before: forwarding that was on, another table, another route', async () => {
    const host = await office.lab.addHost('busy-router', { address: '203.0.113.31/24' });
    await host.exec([
      'sh',
      '-c',
      'echo 1 >/proc/sys/net/ipv4/ip_forward; ip route add 198.18.0.0/15 via 203.0.113.1; exec nft add table inet theirs',
    ]);
    await addMissingLans(office.controlPlane, host, 'office');
    const before = await host.state();
    await join(office, host, '--type', 'connector', '--endpoint', '203.0.113.31:51820');
    await host.cpn(['leave', '--yes']);
    expect(await host.state()).toBe(before);
  });

  it('gives the address back to the network', async () => {
    const host = await office.lab.addHost('guest', { address: '203.0.113.41/24' });
    const { peer } = await join(office, host);
    const listed = async () =>
      JSON.parse((await office.controlPlane.cpn(['network', 'show', 'office', '--json'])).stdout).peers.map(
        ({ id }: { id: number }) => id,
      );
    expect(await listed()).toContain(peer.id);
    await host.cpn(['leave', '--yes']);
    expect(await listed()).not.toContain(peer.id);
  });

  it('is removed with the control plane away; the peer is removed, or this host again, once it is there', async () => {
    const host = await office.lab.addHost('orphan', { address: '203.0.113.42/24' });
    const other = await office.lab.addHost('other', { address: '203.0.113.43/24' });
    const before = await host.state();
    const leaveAlone = async () => {
      await office.controlPlane.host.links[0]?.unplug();
      try {
        const { stderr } = await host.cpn(['leave', '--yes', '--verify']);
        expect(stderr).toMatch(
          /orphan stays in network office.*the next "cpn run", join, reconcile or leave that reaches .* removes it/,
        );
        expect(stderr).toMatch(/removed everything cpn created for it, except .*former-memberships/);
      } finally {
        await office.controlPlane.host.links[0]?.restore();
      }
      const [network, files = ''] = (await host.state()).split('# files');
      expect([network, files.match(/\S*former-memberships/g)?.length]).toEqual([before.split('# files')[0], 1]);
    };
    const first = await join(office, host);
    await join(office, other);
    await leaveAlone();
    expect((await host.cpn(['status'])).stderr).toContain('orphan stays in network office');
    const second = await join(office, host);
    expect(second.peer).toEqual(first.peer);
    await other.cpn(['reconcile']);
    const { networks } = JSON.parse((await other.cpn(['status', '--json'])).stdout);
    const listed = networks[0].peers.find(({ id }: { id: number }) => id === first.peer.id);
    expect(listed).toMatchObject({ name: 'orphan', pin: 'ok', claimed_public_key: null });
    expect(listed.public_key).toBe(second.public_key);
    await leaveAlone();
    expect((await host.cpn(['leave', '--yes'])).stderr).toContain('orphan was removed from network office');
    expect(await host.state()).toBe(before);
    const { peers } = JSON.parse((await office.controlPlane.cpn(['network', 'show', 'office', '--json'])).stdout);
    expect(peers.map(({ name }: { name: string }) => name)).not.toContain('orphan');
  });

  it('is handed over while a second network still needs it', async () => {
    const host = await office.lab.addHost('two-networks', { address: '203.0.113.51/24' });
    await office.lab.addLan(host, '192.168.50.1/24');
    const before = await host.state();
    const lab = ['--name', 'lab', '--cidr', '10.78.0.0/24', '--route', '192.168.50.0/24'];
    await office.controlPlane.cpn(['network', 'create', ...lab]);
    await join(office, host, '--type', 'connector', '--endpoint', '203.0.113.51:51820');
    const key = await makeKey(office.controlPlane, 'lab', 'x', '--type', 'connector');
    const second = [
      'join',
      '-',
      ...office.api,
      '--type',
      'connector',
      '--endpoint',
      '203.0.113.51:51821',
      '--json',
      '--wait',
      '0',
    ];
    expect(JSON.parse((await host.cpn(second, { input: key })).stdout).interface).toBe('cpn1');
    const forwarding = async () => (await host.exec(['cat', '/proc/sys/net/ipv4/conf/eth1/forwarding'])).stdout.trim();
    const table = async () => (await host.exec(['nft', 'list', 'table', 'inet', 'cpn_cpn1'])).stdout;
    expect(await table()).not.toContain('refuse-passing');
    for (const command of [['leave', '--yes'], ['leave'], ['down'], ['down', 'lab', '--all']]) {
      const { exitCode, stderr } = await host.cpn(command, { allowFailure: true });
      const why = command.includes('--all')
        ? '"lab" and --all contradict each other'
        : /has joined 2 networks: cpn0 \("office".*, cpn1 \("lab".*; name one, or give --all/;
      expect([exitCode, stderr]).toEqual([2, expect.stringMatching(why)]);
    }
    const unasked = await host.cpn(['leave', 'office'], { allowFailure: true });
    expect([unasked.exitCode, unasked.stderr]).toEqual([2, expect.stringContaining('to confirm, add --yes')]);
    const { networks } = JSON.parse((await host.cpn(['status', '--json'])).stdout);
    expect(networks.map(({ state }: { state: string }) => state)).not.toContain('down');
    await host.cpn(['leave', '--yes', 'office']);
    expect(await forwarding()).toBe('1');
    // The second network opens more, and so has the rules that close it.
    expect(await table()).toContain('refuse-passing');
    await host.cpn(['leave', '--yes', 'lab']);
    expect(await forwarding()).toBe('0');
    expect(await host.state()).toBe(before);
  });
});
