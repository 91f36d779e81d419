import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CpnError, InvalidValue } from '../../../../src/core/errors/index.ts';
import { parseRefused } from '../../../../src/host/linux/nft/refused.ts';

const metainfo = { metainfo: { version: '1.0.6', json_schema_version: 1 } };
const counter = (name: string, packets: unknown) => ({ counter: { family: 'inet', name, table: 'cpn_a', packets } });
const element = (concat: unknown[], expires?: number) => ({ elem: { val: { concat }, expires } });
const print = (packets: unknown, ...elem: unknown[]) => {
  const set = { set: { family: 'inet', name: 'denied', table: 'cpn_a', timeout: 300, elem } };
  const documents = [[counter('denied_in', packets), counter('denied_out', 7)], [set]];
  return documents.map((objects) => `${JSON.stringify({ nftables: [metainfo, ...objects] })}\n`).join('');
};

test('parseRefused reads counters and connections, the latest first, as nft 1.0.6 prints them', () => {
  const text = print(
    12,
    element(['10.77.0.2', '10.77.0.1', 'tcp', 22], 200),
    element(['fd77::2', 'fd77::1', 17, 53], 299),
    element(['10.77.0.3', '10.77.0.1', 6, 8080]),
  );
  expect(parseRefused(text)).toEqual({
    packets: { in: 12, out: 7 },
    latest: [
      { from: 'fd77::2', to: 'fd77::1', protocol: 'udp', port: 53, seconds: 1 },
      { from: '10.77.0.2', to: '10.77.0.1', protocol: 'tcp', port: 22, seconds: 100 },
      { from: '10.77.0.3', to: '10.77.0.1', protocol: 'tcp', port: 8080, seconds: 300 },
    ],
  });
  const empty = `{"nftables": [{"counter": {"name": "denied_in", "packets": 0}}, {"counter": {"name": "denied_out", "packets": 0}}]}
{"nftables": [{"set": {"name": "denied"}}]}`;
  expect(parseRefused(empty)).toEqual({ packets: { in: 0, out: 0 }, latest: [] });
});

test.each([
  '',
  'x',
  '{"nftables": []}',
  print('12'),
  print(-1),
  print(1, element(['10.77.0.2', '10.77.0.1', 'sctp', 22])),
  print(1, element(['10.77.0.2', '10.77.0.1; flush', 'tcp', 22])),
  print(1, element(['10.77.0.2', '10.77.0.1', 'tcp'])),
  print(1, '10.77.0.2'),
])('parseRefused refuses %j', (text) => {
  expect(() => parseRefused(text)).toThrow(InvalidValue);
});

test('parseRefused throws nothing but a CpnError', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.array(fc.jsonValue()), (packets, elements) => {
      try {
        parseRefused(print(packets, ...elements));
      } catch (error) {
        expect(error).toBeInstanceOf(CpnError);
      }
    }),
  );
});
