import { describe, expect, it } from 'vitest';
import { findAddress } from '../../../src/app/inspect/find-address.ts';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import { address, network, peer } from '../../core/samples.ts';
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

  it.each([
    ['missing', /nor a name that resolves on this host/],
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
