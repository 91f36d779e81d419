import { expect, it } from 'vitest';
import { checkEndpoints } from '../../../src/core/doctor/check-endpoints.ts';
import type { Address } from '../../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { address, bare, desireFor, network, peer } from '../samples.ts';

const six = address('2001:db8::7');
const self = peer(1);
const map = network([
  self,
  peer(2, { name: 'edge', endpoint: parseEndpoint('edge.example.net:51820') }),
  peer(3, { name: 'evil\u001b[31m', endpoint: parseEndpoint('198.51.100.3:51820') }),
  peer(4),
]);
const desired = desireFor(self, map, { resolved: { 'edge.example.net': [six] } });
const mapped = { map, self, enabled: true, desired, actual: bare };
const judge = (...unreachable: Address[]) => checkEndpoints(mapped, new Set(unreachable));

it('a route to each endpoint is fine', () => {
  expect(judge()).toMatchObject([{ verdict: 'ok', found: 'there is a route to each' }]);
});

it('endpoints without a route are a note, with the name and the address that is used', () => {
  expect(judge(six, address('198.51.100.3'))).toMatchObject([
    {
      subject: 'network',
      verdict: 'note',
      found:
        'there is no route to edge (edge.example.net:51820, at 2001:db8::7), evil\u{fffd}[31m (198.51.100.3:51820)',
      remedy: expect.stringContaining('a route to 2001:db8::7'),
    },
  ]);
});

it('a host without peers to dial has none', () => {
  const alone = network([self, peer(4)]);
  const lonely = { ...mapped, map: alone, desired: desireFor(self, alone) };
  expect(checkEndpoints(lonely, new Set())).toEqual([]);
});

it('an endpoint that WireGuard learned is the one that is used', () => {
  const learned = { host: address('198.51.100.9'), port: 7 };
  const present = desired.config.peers.map((each) => ({
    ...each,
    ...{
      endpoint: each.publicKey === peer(3).publicKey ? learned : null,
      latestHandshake: null,
      rxBytes: 0,
      txBytes: 0,
    },
  }));
  const device = { publicKey: null, listenPort: 1, fwmark: null, peers: present };
  const roaming = { ...mapped, actual: { ...bare, device } };
  expect(checkEndpoints(roaming, new Set([address('198.51.100.3')]))).toMatchObject([{ verdict: 'ok' }]);
  expect(checkEndpoints(roaming, new Set([learned.host, six]))).toMatchObject([
    {
      found: expect.stringMatching(
        /^there is no route to edge \(.*\), evil.*\(198\.51\.100\.3:51820, at 198\.51\.100\.9\)$/,
      ),
    },
  ]);
});

it('at most five endpoints are named, with the number of the others', () => {
  const many = network([
    self,
    ...[2, 3, 4, 5, 6, 7, 8].map((number) => peer(number, { endpoint: parseEndpoint(`198.51.100.${number}:1`) })),
  ]);
  const found = (count: number) => {
    const unreachable = new Set(Array.from({ length: count }, (_, at) => address(`198.51.100.${at + 2}`)));
    return checkEndpoints({ ...mapped, map: many, desired: desireFor(self, many) }, unreachable)[0]?.found;
  };
  expect(found(5)).toMatch(/, peer-6 \(198\.51\.100\.6:1\)$/);
  expect(found(7)).toMatch(/, peer-6 \(198\.51\.100\.6:1\) and 2 more$/);
});
