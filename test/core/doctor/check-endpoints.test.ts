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
