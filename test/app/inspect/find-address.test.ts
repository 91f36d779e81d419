import { describe, expect, it } from 'vitest';
import { findAddress } from '../../../src/app/inspect/find-address.ts';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import { address, network, peer, prefix } from '../../core/samples.ts';
import { joinedTo, self } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const office = joinedTo(
  network([self, peer(2, { name: 'nas' }), peer(3, { name: 'twin' }), peer(4, { name: 'twin' })]),
);

describe('what a person means by an address', () => {
  it('is the address, a peer, or the first address of a name, in this order', async () => {
    const simulated = await SimulatedHost.with(office);
    simulated.dnsRecords = {
      nas: [address('192.0.2.1')],
      'db.example': [address('192.0.2.2'), address('2001:db8::2')],
    };
    const find = (text: string) => findAddress(simulated.tools, [office], text);
    expect(await find('2001:DB8::1')).toEqual({ address: '2001:db8::1', origin: null, name: null });
    const origin = 'the address of nas in network office';
    expect(await find('nas')).toEqual({ address: '10.77.0.2', origin, name: null });
    expect(simulated.resolvedNames).toEqual([]);
    expect(await find('DB.example')).toEqual({
      address: '192.0.2.2',
      origin: 'the address that the resolver gives for DB.example; it has 2001:db8::2 too',
      name: { name: 'db.example', answer: ['192.0.2.2', '2001:db8::2'], peer: null },
    });
    const lookedUp = { name: 'missing.example', answer: [], peer: null };
    expect(await find('missing.example.')).toEqual({ address: null, origin: null, name: lookedUp });
  });

  it('is the peer of a name below cpn.internal, also of an earlier name, resolved or not', async () => {
    const labels = [{ peer: 2, labels: ['nas', 'store'] }];
    const simulated = await SimulatedHost.with({ ...office, labels });
    const find = (text: string) => findAddress(simulated.tools, [{ ...office, labels }], text);
    const nas = { peer: 'nas', network: 'office', link: 'cpn0', address: '10.77.0.2' };
    for (const text of ['NAS.office.cpn.internal', 'store.office.cpn.internal.']) {
      const { address: found, name } = await find(text);
      expect([found, name?.answer, name?.peer]).toEqual(['10.77.0.2', [], nas]);
    }
    simulated.dnsRecords = { 'nas.office.cpn.internal': [address('192.0.2.9')] };
    expect(await find('nas.office.cpn.internal')).toMatchObject({
      address: '10.77.0.2',
      origin: 'the address of nas in network office',
      name: { answer: ['192.0.2.9'] },
    });
    for (const text of ['nas.lab.cpn.internal', 'x.nas.office.cpn.internal', 'office.cpn.internal']) {
      expect(await find(text)).toMatchObject({ address: null, name: { peer: null } });
    }
  });

  describe('where a peer has the former name of another', () => {
    const renamed = network([
      self,
      peer(2, { name: 'Database' }),
      peer(4, { name: 'web-1' }),
      peer(5, { name: 'Büro' }),
    ]);
    const labels = [{ peer: 2, labels: ['database', 'web-1'] }];
    const joined = { ...joinedTo(renamed), labels };
    const suffix = '.office.cpn.internal';
    const ofDatabase = 'the address of Database in network office';
    const ofWeb = `the address of web-1 in network office, with the DNS name web-1-4${suffix}`;
    const other = `; the DNS name web-1${suffix} is of Database, 10.77.0.2`;
    const named = `; the peer named web-1 is 10.77.0.4, with the DNS name web-1-4${suffix}`;
    const ofBüro = `the address of Büro in network office, with the DNS name b-ro${suffix}`;
    it.each([
      ['web-1', '10.77.0.4', `${ofWeb}${other}`],
      ['WEB-1.', '10.77.0.4', `${ofWeb}${other}`],
      ['web-1-4', '10.77.0.4', ofWeb],
      [`web-1-4${suffix}`, '10.77.0.4', ofWeb],
      [`Web-1${suffix}.`, '10.77.0.2', `${ofDatabase}${named}`],
      ['database', '10.77.0.2', ofDatabase],
      ['bu\u0308ro', '10.77.0.5', ofBüro],
      ['B-RO', '10.77.0.5', ofBüro],
    ])('%s is %s, %s', async (text, found, origin) => {
      const simulated = await SimulatedHost.with(joined);
      expect(await findAddress(simulated.tools, [joined], text)).toMatchObject({ address: found, origin });
    });
  });

  describe('where a peer chose the DNS name of another host as its name', () => {
    const suffix = '.office.cpn.internal';
    const joined = joinedTo(
      network([
        self,
        peer(2, { name: 'laptop' }),
        peer(3, { name: `Laptop${suffix}` }),
        peer(4, { name: 'www.example' }),
        peer(5, { name: 'bücher.example' }),
        peer(6, { name: '*.example' }),
      ]),
    );
    const named = (name: string, at: string, label: string) =>
      `; the peer named ${name} is ${at}, with the DNS name ${label}${suffix}`;
    const ofResolver = (name: string) => `the address that the resolver gives for ${name}`;
    const records = { 'www.example': ['192.0.2.80'], 'xn--bcher-kva.example': ['192.0.2.81'] };
    it.each([
      [
        `laptop${suffix}`,
        '10.77.0.2',
        /^the address of laptop in network office; the peer named Laptop\S+ is 10\.77\.0\.3/,
      ],
      [`LAPTOP${suffix}.`, '10.77.0.2', /^the address of laptop in network office; the peer named Laptop/],
      ['www.example', '192.0.2.80', `${ofResolver('www.example')}${named('www.example', '10.77.0.4', 'www-example')}`],
      [
        'WWW.example.',
        '192.0.2.80',
        `${ofResolver('WWW.example.')}${named('www.example', '10.77.0.4', 'www-example')}`,
      ],
      ['bücher.example', '192.0.2.81', /; the peer named bücher\.example is 10\.77\.0\.5/],
      ['*.example', '10.77.0.6', /^the address of \*\.example in network office/],
      ['laptop', '10.77.0.2', 'the address of laptop in network office'],
    ])('%s is %s, %s', async (text, found, origin) => {
      const simulated = await SimulatedHost.with(joined);
      simulated.dnsRecords = Object.fromEntries(
        Object.entries(records).map(([name, addresses]) => [name, addresses.map(address)]),
      );
      const answer = await findAddress(simulated.tools, [joined], text);
      expect(answer.address).toBe(found);
      expect(answer.origin).toEqual(typeof origin === 'string' ? origin : expect.stringMatching(origin));
    });

    it('is that peer if the name has no address', async () => {
      const simulated = await SimulatedHost.with(joined);
      expect(await findAddress(simulated.tools, [joined], 'www.example')).toMatchObject({
        address: '10.77.0.4',
        name: null,
      });
    });
  });

  it('is a DNS name of one network, whatever peers other networks have', async () => {
    const lab = joinedTo(
      network([self, peer(2, { name: 'nas' })], { id: 9, name: 'lab', cidr: prefix('10.88.0.0/24') }),
      {
        interface: 'cpn1',
      },
    );
    const simulated = await SimulatedHost.with(office);
    const { origin } = await findAddress(simulated.tools, [office, lab], 'nas.office.cpn.internal');
    expect(origin).toBe('the address of nas in network office');
  });

  it('is a name in Unicode, which the resolver has in its A-labels', async () => {
    const simulated = await SimulatedHost.with(office);
    simulated.dnsRecords = { 'xn--bcher-kva.example': [address('192.0.2.7')] };
    expect(await findAddress(simulated.tools, [office], 'BÜCHER.example.')).toMatchObject({
      address: '192.0.2.7',
      name: { name: 'xn--bcher-kva.example' },
    });
  });

  it.each([
    ['missing', /"missing" is neither .*; "cpn status" lists the peers; .* in full, such as db\.corp\.example$/],
    ['bücher', /"bücher" is neither/],
    ['https://db.corp.example:8443/x', /is a URL; write db\.corp\.example --port 8443$/],
    ['10.77.0.2:443', /has a port; write 10\.77\.0\.2 --port 443$/],
    ['*.corp.example', /is a wildcard; write corp\.example$/],
    ['https://', /neither an IP address/],
    ['10.77.0.0/24', /neither an IP address/],
    ['010.77.0.1', /neither an IP address/],
    ['fe80::1%eth0', /is not an IP address/],
    ['', /neither an IP address/],
  ])('is not %j', async (text, message) => {
    const simulated = await SimulatedHost.with(office);
    const failure = await findAddress(simulated.tools, [office], text).catch((error) => error);
    expect(failure).toBeInstanceOf(InvalidValue);
    expect(failure.message).toMatch(message);
  });

  it('is not the name of two peers', async () => {
    const simulated = await SimulatedHost.with(office);
    await expect(findAddress(simulated.tools, [office], 'twin')).rejects.toThrow(
      '"twin" matches 2 peers: "twin" (3, 10.77.0.3) in cpn0, "twin" (4, 10.77.0.4) in cpn0; give one of the addresses',
    );
  });
});
