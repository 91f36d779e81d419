import { gzipSync } from 'node:zlib';
import { family, type Row, refused, skipped } from '../malicious-reply.ts';
import { keyOf, network } from '../true-replies.ts';
import { always, jsonType, map, mapText, whole } from '../wire.ts';

/** The reply that leaves a host in the middle of a join: it does not decode. */
export const unreadable = 'a document: nothing at all, to an enrolment';

/** Those that are wrong about one peer alone. */
const ofOnePeer = [
  'an address twice, the last one wrong',
  '100,000 lists in each other for a peer',
  'a lone surrogate for an address',
  'of 100,000 served routes',
  'of 100,000 withdrawn routes',
];

/** Bodies whose content type is JSON. */
const bodies: readonly (readonly [string, string])[] = [
  ['nothing at all', ''],
  ['a space', ' '],
  ['null', 'null'],
  ['a list', '[]'],
  ['a number', '7'],
  ['a text', '"text"'],
  ['true', 'true'],
  ['NaN', 'NaN'],
  ['Infinity', '{"data":{"id":Infinity}}'],
  ['a half', '{"data":{"id":7'],
  ['another quote', "{'data':{'id':7}}"],
  ['a comment', '{"data":{/* */"id":7}}'],
  ['a comma too many', '{"data":{"id":7,}}'],
  ['a raw newline in a text', '{"data":{"name":"a\nb"}}'],
  ['a raw NUL', '{"data":{"name":"a\0b"}}'],
  ['HTML', '<html>log in</html>'],
  ['YAML', 'data:\n  id: 7\n'],
  ['two documents', '{"data":{}}{"data":{}}'],
  ["JSON after )]}'", ')]}\',\n{"data":{}}'],
  ['data that is null', '{"data":null}'],
  ['data that is a text', '{"data":"{}"}'],
  ['a bare word', 'undefined'],
];

/** The true map as a text, with a change that makes it meaningless. */
const spoilt: readonly (readonly [string, Row['make']])[] = [
  ['trailing words', mapText((text) => `${text} and more`)],
  ['a trailing NUL', mapText((text) => `${text}\0`)],
  ['two byte order marks', mapText((text) => `\ufeff\ufeff${text}`)],
  ['a byte order mark in the middle', mapText((text) => text.replace('{', '{\ufeff'))],
  ['a key twice, the last one wrong', mapText((text) => text.replace('"name":"office"', '"name":"office","id":8'))],
  ['peers twice, the last ones wrong', mapText((text) => text.replace(/}$/, ',"data":{"id":7,"peers":[]}}'))],
  [
    'an address twice, the last one wrong',
    mapText((text) => text.replace('"address":"10.77.0.2"', '"address":"10.77.0.2","address":"127.1"')),
  ],
  [
    'a range of the prototype',
    mapText((text) => text.replace('"private_cidr"', '"__proto__":{"private_cidr":"0.0.0.0/0"},"x"')),
  ],
  [
    '100,000 lists in each other for a peer',
    mapText((text) => text.replace('"peers":[', `"peers":[${nested('[', ']', 100_000)},`)),
  ],
  [
    '100,000 objects in each other for an id',
    mapText((text) => text.replace('"id":7', `"id":${nested('{"a":', '}', 100_000)}`)),
  ],
  ['100,000 envelopes', always(whole({ body: `${'{"data":'.repeat(100_000)}{}${'}'.repeat(100_000)}` }))],
  ['1,000,000 lists that never end', always(whole({ body: '['.repeat(1_000_000) }))],
  ['a lone surrogate for an address', mapText((text) => text.replace('10.77.0.2', '\\ud800'))],
  ['a lone surrogate in a range', mapText((text) => text.replace('10.77.0.0/24', '10.77.0.0/24\\udc00'))],
  ['a name of 10 MiB', map({ name: 'x'.repeat(10 << 20) })],
  ['a number of 1,000,000 digits', mapText((text) => text.replace('"id":7', `"id":${'7'.repeat(1_000_000)}`))],
  [
    '1,000,000 unknown fields and nothing else',
    always(whole({ body: `{"data":{${Array.from({ length: 1_000_000 }, (_, n) => `"f${n}":1`).join()}}}` })),
  ],
];

/** Bodies in another encoding than their header has, or than UTF-8. */
const encodings: readonly (readonly [string, (text: string) => Buffer])[] = [
  ['UTF-16', (text) => Buffer.from(`\ufeff${text}`, 'utf16le')],
  ['Latin-1', (text) => Buffer.from(text.replace('office', 'b\u00fcro'), 'latin1')],
  [
    'overlong UTF-8',
    (text) => Buffer.concat([Buffer.from(text.slice(0, -2)), Buffer.from([0xc0, 0xaf]), Buffer.from('}}')]),
  ],
  ['surrogates in UTF-8', (text) => Buffer.from(text.replace('office', '\u00ed\u00a0\u0080'), 'latin1')],
  ['UTF-7', (text) => Buffer.from(text.replaceAll('"', '+ACI-'))],
];

/** Maps that are too much for a host. */
const crowds: readonly (readonly [string, Row['make']])[] = [
  ['1,000,000 peers', crowd(1_000_000)],
  ['1,000,000 peers, deflated', crowd(1_000_000, true)],
  ['16,385 peers', crowd(16_385)],
  ['257 routes', map({ routes: Array.from({ length: 257 }, (_, n) => `172.16.${n >> 8}.${n & 255}/32`) })],
  ['700,000 routes that are one', map({ routes: Array(700_000).fill('172.16.0.0/32') })],
  ['100,000 served routes', map({}, { routes: Array(100_000).fill('172.16.0.0/32') })],
  ['100,000 withdrawn routes', map({}, { withdrawn: Array(100_000).fill('172.16.0.0/32') })],
];

export const documents = family('a document', [
  ...bodies.map(([name, body]) => row(name, always(whole({ body })))),
  ...bodies.map(
    ([name, body]): Row => ({
      ...row(`${name}, to an enrolment`, always(whole({ status: '201 Created', body }))),
      to: 'enrolment',
    }),
  ),
  ...spoilt.map(([name, make]) => row(name, make)),
  ...encodings.map(([name, encode]) =>
    row(name, (request) => whole({ body: encode(JSON.stringify({ data: network(request) })) })),
  ),
]);

export const crowded = family(
  'a crowd',
  crowds.map(([name, make]) => row(`of ${name}`, make)),
);

function row(name: string, make: Row['make']): Row {
  return { name, to: 'map', outcome: ofOnePeer.includes(name) ? skipped : refused, make };
}

function nested(open: string, close: string, depth: number): string {
  return `${open.repeat(depth)}1${close.repeat(depth)}`;
}

/** So many peers, 10,000 at a time; deflated they are the same ones over and over. */
function crowd(count: number, isDeflated = false): Row['make'] {
  return (request) => {
    const { peers: _peers, ...head } = network(request);
    const coding = isDeflated ? '\r\nContent-Encoding: gzip' : '';
    const encode = (text: string) => (isDeflated ? gzipSync(text) : Buffer.from(text));
    const parts = function* (): Generator<Buffer> {
      yield Buffer.from(`HTTP/1.1 200 OK\r\n${jsonType}${coding}\r\nConnection: close\r\n\r\n`);
      yield encode(`${JSON.stringify({ data: head }).slice(0, -2)},"peers":[${somePeers(0, 1)}`);
      const same = isDeflated ? encode(`,${somePeers(1, 10_000)}`) : null;
      for (let from = 1; from < count; from += 10_000) {
        yield same ?? encode(`,${somePeers(from, Math.min(10_000, count - from))}`);
      }
      yield encode(']}}');
    };
    return { bytes: parts(), ending: 'end' };
  };
}

function somePeers(from: number, count: number): string {
  const key = keyOf('crowd').slice(8);
  const some = Array.from({ length: count }, (_, index) => {
    const number = from + index;
    const address = `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`;
    return `{"id":${number},"public_key":"${number.toString(36).padStart(8, 'A')}${key}","address":"${address}"}`;
  });
  return some.join();
}
