import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinHost, serveControlPlane } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { DnsServer } from '../lab/dns.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { type Resolved, startResolved } from '../lab/resolved.ts';
import { join, type Office, plan, startOffice, status } from './office.ts';

/** A laptop with systemd-resolved, and a LAN with a DNS server of its own behind a connector. */
let office: Office;
let connector: Host;
let laptop: Host;
let resolved: Resolved;
let daemon: Daemon;
/** That of the connector. */
let serving: Daemon;
let lan: Awaited<ReturnType<Office['lab']['addLan']>>;
let uplink: DnsServer;
let lanDns: DnsServer;

const [server, name, reverse] = ['192.168.50.53', 'db.corp.example', '9.50.168.192.in-addr.arpa'];
const domains = ['~50.168.192.in-addr.arpa', '~corp.example'];
const ownDomains = ['~0.77.10.in-addr.arpa', '~office.cpn.internal'];

beforeAll(async () => {
  office = await startOffice();
  const { lab } = office;
  const addUplink = async () =>
    DnsServer.start(await lab.addHost('dns', { address: '203.0.113.53/24' }), {
      'www.example': ['192.0.2.80'],
      'cp.service.example': ['203.0.113.1'],
    });
  const addConnector = async () => {
    const host = await lab.addHost('connector', { address: '203.0.113.11/24' });
    return [host, await lab.addLan(host, '192.168.50.1/24')] as const;
  };
  [uplink, [connector, lan], laptop] = await Promise.all([
    addUplink(),
    addConnector(),
    lab.addHost('laptop', { address: '203.0.113.22/24' }),
  ]);
  [lanDns, resolved] = await Promise.all([
    lan
      .addHost('lan-dns', `${server}/24`)
      .then((host) =>
        DnsServer.start(host, { [name]: ['192.168.50.9'], [reverse]: [name], 'www.example': ['192.0.2.66'] }),
      ),
    startResolved(laptop, { servers: ['203.0.113.53'] }),
    join(office, connector, '--type', 'connector', '--endpoint', `${connector.address}:51820`),
  ]);
  serving = await startDaemon(connector);
  await eventually('it waits for updates', async () => (await status(connector)).sync.mode === 'push', often);
  await office.controlPlane.cpn(['network', 'update', 'office', '--add-route', '192.168.50.54/32']);
  await update(`192.168.50.0/24=${server},corp.example`);
}, 90_000);

afterAll(() => office?.lab.stop());

async function update(routeDns: string, ...flags: string[]): Promise<void> {
  await office.controlPlane.cpn(['network', 'update', 'office', '--route-dns', routeDns, ...flags]);
}

const often = { everyMs: 50 };

/** The DNS settings of the tunnel's interface, as resolvectl prints them. */
async function settings(): Promise<Record<string, string[]>> {
  const read = async (what: string) => {
    const { stdout } = await resolved.resolvectl([what, 'cpn0']);
    return stdout
      .trim()
      .replace(/^Link \d+ \(cpn0\): ?/, '')
      .split(/\s+/)
      .filter((word) => word !== '')
      .toSorted();
  };
  const [dns = [], domain = [], ...rest] = await Promise.all(
    ['dns', 'domain', 'default-route', 'dnssec', 'dnsovertls'].map(read),
  );
  return { dns, domain, rest: rest.flat() };
}
const direct = { dns: [server], domain: domains, rest: ['no', 'no', 'no'] };
/** While the daemon runs. */
const served = {
  dns: ['10.77.0.2:553'],
  domain: [...domains, ...ownDomains].toSorted(),
  rest: ['no', 'no', 'no'],
};

/** Sends LLMNR replies (RFC 4795) with each id from one address to another. */
const forgeLlmnr = `
const [from, to, name] = process.argv.slice(1);
const socket = require('node:dgram').createSocket('udp4');
const question = Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([0, 0, 1, 0, 1])]);
const data = Buffer.from([0, 0, 0, 30, 0, 4, ...from.split('.').map(Number)]);
const rest = Buffer.concat([Buffer.from([0x80, 0, 0, 1, 0, 1, 0, 0, 0, 0]), question, question, data]);
const send = (at) => {
  for (let id = at; id < at + 256; id += 1) socket.send(Buffer.concat([Buffer.from([id >> 8, id & 255]), rest]), 5355, to);
  setTimeout(send, 2, (at + 256) % 65536);
};
socket.bind(5355, from, () => {
  console.log('sending');
  send(0);
});
`;

describe('a domain behind a route', () => {
  it('is resolved through the tunnel from the join on, and no other name is', async () => {
    // Without a handshake, the first query would wait for WireGuard's retry after 5 s.
    await joinHost(office.controlPlane, laptop, { network: 'office' });
    expect(await settings()).toEqual(direct);
    await eventually('the name resolves', async () => expect(await resolved.query(name)).toEqual(['192.168.50.9']));
    expect(await resolved.query(reverse, 'PTR')).toEqual([name]);
    expect(await resolved.query('www.example')).toEqual(['192.0.2.80']);
    expect(await resolved.query('none.example')).toEqual(['ENOTFOUND']);
    expect(await lanDns.countQuestions('www.example')).toBe(0);
    expect(await uplink.countQuestions(name)).toBe(0);
    expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
    expect((await status(laptop)).domains).toMatchObject([
      {
        domain: 'office.cpn.internal',
        state: 'waiting',
        reason: expect.stringContaining('systemctl enable --now cpn'),
      },
      { domain: 'corp.example', route: '192.168.50.0/24', servers: [server], state: 'used' },
    ]);
  });

  it('comes without LLMNR and mDNS, by which any peer could answer, also with --no-dns', async () => {
    const scopes = async () => /Current Scopes: .*/.exec((await resolved.resolvectl(['status', 'cpn0'])).stdout)?.[0];
    expect(await scopes()).toBe('Current Scopes: DNS');
    const forger = connector.spawn(['node', '-e', forgeLlmnr, '10.77.0.1', '10.77.0.2', 'wpad']);
    await forger.waitForLine(/^sending$/);
    expect(await resolved.resolvectl(['query', 'wpad'], { allowFailure: true })).not.toMatchObject({ exitCode: 0 });
    await forger.stop();
    await laptop.cpn(['set', '--no-dns']);
    expect(await scopes()).toBe('Current Scopes: none');
    await laptop.cpn(['set', '--dns']);
    expect(await scopes()).toBe('Current Scopes: DNS');
  });

  it('is set again within 5 s of whatever took it away', async () => {
    daemon = await startDaemon(laptop);
    for (const takeAway of [
      () => resolved.resolvectl(['revert', 'cpn0']),
      () => resolved.resolvectl(['dns', 'cpn0', '203.0.113.99']),
      () => resolved.resolvectl(['default-route', 'cpn0', 'yes']),
      () => resolved.restart({ keepState: false }),
      () => laptop.exec(['ip', 'link', 'delete', 'cpn0']),
    ]) {
      await takeAway();
      await eventually('the settings are back', async () => expect(await settings()).toEqual(served), often);
    }
    await eventually('the name resolves', async () => expect(await resolved.query(name)).toEqual(['192.168.50.9']));
  });

  it('changes with the network, and goes with its route', async () => {
    await update(`192.168.50.0/24=${server},corp.example,second.example`);
    await eventually('the second domain is set', async () =>
      expect((await settings()).domain).toEqual([...served.domain, '~second.example'].toSorted()),
    );
    await laptop.cpn(['set', '--no-accept-routes']);
    expect(await settings()).toMatchObject({ dns: ['10.77.0.2:553'], domain: ownDomains });
    expect((await status(laptop)).domains).toMatchObject([
      { domain: 'office.cpn.internal', servers: ['10.77.0.2:553'], state: 'used' },
      { state: 'refused', reason: 'its route 192.168.50.0/24 is not used: not accepted' },
      { state: 'refused' },
    ]);
    await laptop.cpn(['set', '--accept-routes']);
    expect(await settings()).toMatchObject({ dns: served.dns });
    await laptop.cpn(['set', '--no-dns']);
    expect(await settings()).toMatchObject({ dns: [], domain: [] });
    await laptop.cpn(['set', '--dns']);
    await update(`192.168.50.0/24=${server},corp.example`);
    await eventually('one domain is set', async () => expect(await settings()).toEqual(served));
  });

  it('is refused alone if another interface has it', async () => {
    await laptop.exec(['ip', 'link', 'add', 'other', 'type', 'bridge']);
    await laptop.exec(['ip', 'address', 'add', '10.99.0.1/32', 'dev', 'other']);
    await laptop.exec(['ip', 'link', 'set', 'other', 'up']);
    await resolved.resolvectl(['domain', 'other', '~second.example']);
    await update(`192.168.50.0/24=${server},corp.example,second.example`);
    await eventually('one is refused', async () => {
      const { domains: reported } = await status(laptop);
      expect(reported).toMatchObject([
        { domain: 'office.cpn.internal', state: 'used' },
        { domain: 'corp.example', state: 'used' },
        { domain: 'second.example', state: 'refused', reason: 'the interface other has it' },
      ]);
      return true;
    });
    expect(await settings()).toEqual(served);
    await laptop.exec(['ip', 'link', 'delete', 'other']);
  });

  it('has servers of its own, and names of peers resolve, while the daemon runs', async () => {
    const { lab } = office;
    const second = await DnsServer.start(await lan.addHost('second-dns', '192.168.50.54/24'), {
      'db.second.example': ['192.168.50.10'],
    });
    await update(
      `192.168.50.0/24=${server},corp.example`,
      '--route-dns',
      '192.168.50.54/32=192.168.50.54,second.example',
    );
    await eventually(
      'a domain of the second server resolves',
      async () => expect(await resolved.query('db.second.example')).toEqual(['192.168.50.10']),
      often,
    );
    expect(await resolved.query(name)).toEqual(['192.168.50.9']);
    expect(await second.countQuestions(name)).toBe(0);
    expect(await resolved.query('connector.office.cpn.internal')).toEqual(['10.77.0.1']);
    expect(await resolved.query('1.0.77.10.in-addr.arpa', 'PTR')).toEqual(['connector.office.cpn.internal']);
    expect(await resolved.query('connector.office.cpn.internal', 'AAAA')).toEqual(['ENODATA']);
    expect(await resolved.query('none.office.cpn.internal')).toEqual(['ENOTFOUND']);
    const newcomer = await lab.addHost('newcomer', { address: '203.0.113.23/24' });
    await join(office, newcomer);
    await eventually(
      'the new peer has a name',
      async () => {
        // systemd-resolved caches that the name does not exist.
        await resolved.resolvectl(['flush-caches']);
        expect(await resolved.query('newcomer.office.cpn.internal')).toEqual(['10.77.0.3']);
        return true;
      },
      often,
    );
    expect(await uplink.countQuestions('newcomer.office.cpn.internal')).toBe(0);
    expect(await resolved.query('www.example')).toEqual(['192.0.2.80']);
    await second.stop();
    expect(await resolved.query('dead.second.example')).toEqual(['ESERVFAIL']);
    expect(await lanDns.countQuestions('dead.second.example')).toBe(0);
    const states = async () => (await status(laptop)).domains.map(({ state }: { state: string }) => state);
    expect(await states()).toEqual(['used', 'used', 'used']);
    let queries = 0;
    await eventually('the silent server is shown', async () => {
      // systemd-resolved may cache a failure.
      queries += 1;
      expect(await resolved.query(`dead-${queries}.second.example`)).toEqual(['ESERVFAIL']);
      expect(await states()).toEqual(['used', 'used', 'silent']);
      return true;
    });
    expect((await status(laptop)).domains[2].reason).toBe('its DNS server does not answer');
    expect(await laptop.cpn(['status', '--check'], { allowFailure: true })).toMatchObject({ exitCode: 3 });
    expect(await resolved.query('laptop.office.cpn.internal')).toEqual(['10.77.0.2']);
    expect(await lanDns.countQuestions('laptop.office.cpn.internal')).toBe(0);
  });

  it('has the names of peers while a server behind a route refuses its queries', async () => {
    const zone = { [name]: ['192.168.50.9'], [reverse]: [name] };
    await lanDns.serve('refusing');
    await resolved.resolvectl(['flush-caches']);
    expect(['EREFUSED', 'ESERVFAIL']).toContain((await resolved.query(name)).join());
    expect(await resolved.query('connector.office.cpn.internal')).toEqual(['10.77.0.1']);
    await lanDns.serve(zone);
    expect(await resolved.query(name)).toEqual(['192.168.50.9']);
    expect(await lanDns.countQuestions('connector.office.cpn.internal')).toBe(0);
  });

  it('is failing, with the code, while its server refuses each query', async () => {
    await lanDns.serve('refusing');
    const ofDomain = async () => (await status(laptop)).domains[1];
    let queries = 0;
    await eventually('the failing server is shown', async () => {
      queries += 1;
      await resolved.query(`refused-${queries}.corp.example`);
      expect(await ofDomain()).toMatchObject({ state: 'failing', reason: 'its DNS server answers REFUSED' });
      return true;
    });
    expect((await laptop.cpn(['status'])).stdout).toMatch(/corp\.example .* failing +its DNS server answers REFUSED/);
    expect(await laptop.cpn(['status', '--check'], { allowFailure: true })).toMatchObject({ exitCode: 3 });
    const print = async (...args: string[]) => (await laptop.cpn(args, { allowFailure: true })).stdout;
    expect(await print('doctor')).toMatch(
      /the DNS server 192\.168\.50\.53 of corp\.example on cpn0.*\n?.*answers REFUSED/,
    );
    expect(await print('explain', 'refused.corp.example')).toContain(`${server} answers REFUSED for corp.example`);
    await lanDns.serve({ [name]: ['192.168.50.9'], [reverse]: [name] });
    await resolved.resolvectl(['flush-caches']);
    expect(await resolved.query(name)).toEqual(['192.168.50.9']);
    await eventually('it is used again', async () => (await ofDomain()).state === 'used', often);
  });

  it('stays in use while a program queries names that its server does not answer', async () => {
    const dead = ['dead-1', 'dead-2', 'dead-3'].map((label) => `${label}.corp.example`);
    await lanDns.serve({
      ...{ [name]: ['192.168.50.9'], [reverse]: [name] },
      ...Object.fromEntries(dead.map((each) => [each, ['silent']])),
    });
    const before = await lanDns.countQuestions('corp.example');
    await eventually('the daemon queries the domain', async () => {
      await Promise.all(dead.map((each) => resolved.query(each)));
      return (await lanDns.countQuestions('corp.example')) > before;
    });
    expect((await status(laptop)).domains[1]).toMatchObject({ state: 'used' });
    await lanDns.serve({ [name]: ['192.168.50.9'], [reverse]: [name] });
  });

  it('believes its server only about its own names', async () => {
    const zone = { [name]: ['192.168.50.9'], [reverse]: [name] };
    await lanDns.serve({
      ...{ ...zone, 'cname.corp.example': ['-> www.example 60'], 'www.example': ['192.0.2.66 60'] },
      ...{ 'bare.corp.example': ['-> cp.service.example 60'] },
      ...{ 'peer.corp.example': ['-> connector.office.cpn.internal 60'] },
    });
    await resolved.resolvectl(['flush-caches']);
    expect(await resolved.query('cname.corp.example')).toEqual(['192.0.2.66']);
    expect(await resolved.query('www.example')).toEqual(['192.0.2.80']);
    expect(await resolved.query('bare.corp.example')).toEqual(['203.0.113.1']);
    expect(await resolved.query('peer.corp.example', 'AAAA')).toEqual(['ENODATA']);
    expect(await resolved.query('peer.corp.example')).toEqual(['10.77.0.1']);
    expect(await resolved.query('connector.office.cpn.internal')).toEqual(['10.77.0.1']);
    await lanDns.serve(zone);
  });

  it('resolves without the daemon, which is used again once it runs', async () => {
    await daemon.stop();
    expect(await settings()).toEqual(direct);
    await resolved.resolvectl(['flush-caches']);
    expect(await resolved.query(name)).toEqual(['192.168.50.9']);
    daemon = await startDaemon(laptop);
    await eventually(
      'the names of peers resolve again',
      async () => {
        await resolved.resolvectl(['flush-caches']);
        expect(await resolved.query('connector.office.cpn.internal')).toEqual(['10.77.0.1']);
        return true;
      },
      often,
    );
  });

  it('shows that another program holds the port, also one of root, until it ends', async () => {
    await daemon.stop();
    const hold = "require('node:dgram').createSocket('udp4').bind(553, '10.77.0.2', () => console.log('bound'))";
    const holder = laptop.spawn(['node', '-e', hold]);
    await holder.waitForLine(/^bound$/);
    daemon = await startDaemon(laptop);
    const check = async () => (await laptop.cpn(['status', '--check'], { allowFailure: true })).exitCode;
    const held = 'another program holds 10.77.0.2:553';
    await eventually('domains have their servers', async () => {
      const problem = { code: 'names-port-taken', remedy: expect.stringContaining('sport = :553') };
      expect((await status(laptop)).problems).toContainEqual(expect.objectContaining(problem));
      expect(await settings()).toEqual(direct);
      return true;
    });
    expect(await check()).toBe(3);
    expect((await status(laptop)).domains[0]).toMatchObject({
      ...{ state: 'waiting', reason: expect.stringContaining(held) },
    });
    const print = async (...args: string[]) => (await laptop.cpn(args, { allowFailure: true })).stdout;
    expect(await print('doctor')).toContain(`${held}, where the daemon serves names`);
    expect(await print('explain', 'connector.office.cpn.internal')).toContain(held);
    await holder.stop();
    await eventually('the names of peers are served', async () => (await check()) === 0, often);
    await eventually('domains have the daemon', async () => expect((await settings()).dns).toEqual(served.dns), often);
  });

  it('stays while the daemon, the control plane or the connector is dead, and other names resolve', async () => {
    // The pass of the daemon that set its name server has ended then.
    await laptop.cpn(['reconcile']);
    await daemon.stop();
    expect(await settings()).toEqual(direct);
    await office.controlPlane.process.stop();
    await serving.stop();
    expect(await resolved.query(name)).toEqual(['192.168.50.9']);
    await connector.exec(['ip', 'link', 'set', 'cpn0', 'down']);
    await resolved.resolvectl(['flush-caches']);
    const query = resolved.query(name, 'A', { timeoutMs: 500 });
    expect(await resolved.query('www.example')).toEqual(['192.0.2.80']);
    expect(['ESERVFAIL', 'ETIMEOUT']).toContain((await query).join());
    expect(await uplink.countQuestions(name)).toBe(0);
  });

  it('is taken back', async () => {
    const { host, url } = office.controlPlane;
    await serveControlPlane(host, new URL(url).hostname, path(host.homeDir, 'password'), []);
    await laptop.cpn(['down']);
    expect(await resolved.query(name)).toEqual(['ENOTFOUND']);
    await laptop.cpn(['up']);
    expect((await settings()).dns).toEqual([server]);
    await laptop.cpn(['leave', '--yes']);
    expect(await resolved.query('www.example')).toEqual(['192.0.2.80']);
    expect((await laptop.exec(['ls', '/run/systemd/resolve/netif'])).stdout).toBe('');
  });
});
