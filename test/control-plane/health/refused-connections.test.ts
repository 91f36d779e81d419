import { expect, test } from 'vitest';
import type { Event } from '../../../src/contract/event.ts';
import { hour } from '../harness.ts';
import { type OfficePeer, startOffice } from './office.ts';

const [ofOne, ofTwo] = ['10.77.0.1', '10.77.0.2'];

test('refused connections are events with the names of peers: once an hour each, and 60 an hour for a host', async () => {
  const { one, two, network, plane, token, report } = await startOffice();
  const refused = (from: string, port: number) => ({ from, to: ofOne, protocol: 'tcp', port });
  const list = async () => {
    const reply = await plane.call('GET', `/api/networks/${network}/events?limit=500`, { token });
    return reply.body.data.filter(({ type }: Event) => type === 'access.refused');
  };
  await report(one, { refused: [refused(ofTwo, 22), refused('192.168.1.7', 22)] });
  await report(one, { refused: [refused(ofTwo, 22)] });
  const named = ({ id, name }: OfficePeer) => ({ id, name });
  const details = { to: named(one), protocol: 'tcp', port: 22 };
  expect(await list()).toMatchObject([
    { peer: named(one), route: null, details: { ...details, from: named(two) } },
    { peer: named(one), route: null, details: { ...details, from: '192.168.1.7' } },
  ]);
  // Another host may report the same connection.
  await report(two, { refused: [refused(ofTwo, 22)] });
  expect((await list()).at(-1)).toMatchObject({ peer: named(two), details: { ...details, from: named(two) } });
  plane.clock.advance(hour);
  await report(one, { refused: [refused(ofTwo, 22)] });
  expect(await list()).toHaveLength(4);
  for (let port = 1000; port < 1060; port += 1) {
    plane.clock.advance(hour / 60);
    await report(one, { refused: [0, 1, 2, 3].map((each) => refused(ofTwo, 4 * port + each)) });
  }
  const since = (await list()).length - 4;
  expect(since).toBeGreaterThan(30);
  expect(since).toBeLessThanOrEqual(60);
});

test.each([
  { from: '10.77.0.300', to: '10.77.0.1', protocol: 'tcp', port: 22 },
  { from: '10.77.0.2', to: 'one', protocol: 'tcp', port: 22 },
  { from: '10.77.0.2', to: '10.77.0.1', protocol: 'icmp', port: 22 },
  { from: '10.77.0.2', to: '10.77.0.1', protocol: 'udp', port: 65_536 },
])('a report with the refused connection %j is a 422', async (refused) => {
  const { one, report } = await startOffice();
  expect((await report(one, { refused: [refused] })).status).toBe(422);
});
