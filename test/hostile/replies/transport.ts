import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { family, named, type Row, refused, unreachable, type WireReply } from '../malicious-reply.ts';
import { network } from '../true-replies.ts';
import { always, jsonType, raw, whole } from '../wire.ts';

const trueMap: (request: Parameters<Row['make']>[0]) => string = (request) =>
  JSON.stringify({ data: network(request) });

let spaces: Buffer | undefined;

/** Compressed once: on a busy machine it takes longer than the deadline of a request. */
const gzipSpaces = () => (spaces ??= gzipSync(Buffer.alloc(200 << 20, ' '), { level: 1 }));

/** The true map in an encoding, and the header for it. */
const codings: readonly (readonly [string, string, (text: string) => Buffer])[] = [
  ['br', 'br', (text) => brotliCompressSync(text)],
  ['deflate', 'deflate', (text) => deflateSync(text)],
  ['raw deflate', 'deflate', (text) => deflateRawSync(text)],
  ['gzip of gzip, declared twice', 'gzip, gzip', (text) => gzipSync(gzipSync(text))],
  ['gzip of gzip, declared once', 'gzip', (text) => gzipSync(gzipSync(text))],
  ['br of gzip', 'gzip, br', (text) => brotliCompressSync(gzipSync(text))],
  ['zstd', 'zstd', (text) => Buffer.from(text)],
  ['compress', 'compress', (text) => Buffer.from(text)],
  ['x-gzip', 'x-gzip', (text) => gzipSync(text)],
  ['GZIP', 'GZIP', (text) => gzipSync(text)],
  ['an unknown coding', 'owned', (text) => Buffer.from(text)],
  ['no coding', '', (text) => Buffer.from(text)],
  ['gzip that is none', 'gzip', (text) => Buffer.from(text)],
  ['identity that is gzip', 'identity', (text) => gzipSync(text)],
  ['gzip cut short', 'gzip', (text) => gzipSync(text).subarray(0, -12)],
  ['gzip with a wrong sum', 'gzip', (text) => spoil(gzipSync(text))],
  ['gzip of nothing', 'gzip', () => gzipSync('')],
  ['gzip and then something else', 'gzip', (text) => Buffer.concat([gzipSync(text), gzipSync(' and more')])],
  ['200 MiB of spaces in gzip', 'gzip', gzipSpaces],
  [
    'a thousand members of 1 MiB in gzip',
    'gzip',
    () => Buffer.concat(Array(1000).fill(gzipSync(Buffer.alloc(1 << 20, '[')))),
  ],
];

const contentTypes = [
  'text/html',
  'text/plain',
  'application/octet-stream',
  'application/jsonp',
  'application/javascript',
  'text/json',
  'application/json, text/html',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  'image/png',
  'application/xml',
  '',
  ';',
  'json',
  'application/json\u001b[2J',
  'text/\u009b31m',
  'application/\u00e9json',
  'x'.repeat(5000),
  'text/html; $(touch /tmp/owned)',
  "application/json'--",
  'application/json/../x',
];

/** Parts of a body as a chunked one, whatever they are. */
const chunks = (body: string): WireReply => ({
  bytes: [raw({ headers: [jsonType, 'Transfer-Encoding: chunked'], measured: false }), Buffer.from(body)],
  ending: 'end',
});

/** Heads of a reply that are none, or that contradict themselves. */
const heads: readonly (readonly [string, string])[] = [
  ['a negative length', `${jsonType}\r\nContent-Length: -1`],
  ['a length in hex', `${jsonType}\r\nContent-Length: 0x2`],
  ['a length with a sign', `${jsonType}\r\nContent-Length: +2`],
  ['a length that is a word', `${jsonType}\r\nContent-Length: two`],
  ['a header without a colon', `${jsonType}\r\nowned`],
  ['a header with a space before the colon', `${jsonType}\r\nETag : "1"`],
  ['a header without a name', `${jsonType}\r\n: owned`],
  ['a header with a NUL', `${jsonType}\r\nETag: "1\0"`],
  ['a header with a bare return', `${jsonType}\r\nETag: "1"\rX: y`],
  ['a name with a space', `${jsonType}\r\nE Tag: "1"`],
  ['a name with an escape', `${jsonType}\r\nE\u001bTag: "1"`],
  ['headers of 100 KiB', `${jsonType}\r\nX: ${'x'.repeat(100 << 10)}`],
  ['5,000 headers', `${jsonType}\r\n${Array.from({ length: 5000 }, (_, n) => `X-${n}: y`).join('\r\n')}`],
];

/** Some that the host takes for failures of the connection, and retries. */
const retriedHeads: typeof heads = [
  ['a length and chunks', `${jsonType}\r\nContent-Length: 2\r\nTransfer-Encoding: chunked`],
  ['two lengths', `${jsonType}\r\nContent-Length: 2\r\nContent-Length: 3`],
  ['two lengths in one', `${jsonType}\r\nContent-Length: 2, 3`],
  ['a length of 10^30', `${jsonType}\r\nContent-Length: 1${'0'.repeat(30)}`],
];

const statusLines = [
  'ICY 200 OK',
  'HTTP/1.1 2OO OK',
  'HTTP/1.1 20 OK',
  'HTTP/1.1 2000 OK',
  'HTTP/1.1 -200 OK',
  'HTTP/1.1',
  'HTTP/9.9 200 OK',
  'http/1.1 200 OK',
  'SSH-2.0-OpenSSH_9.2',
  '<html>',
  '{"data":{}}',
  '\0\0\0\0',
  '\u0016\u0003\u0001\u0002\0',
  'GET / HTTP/1.1',
  '220 mail ESMTP',
];

/** Lines that are no HTTP, and that a parser may take for it. */
const odd = ['HTTP/2.0 200 OK', 'HTTP/1.1 200 \u001b[2J\0', 'RTSP/1.0 200 OK'];

const badChunks = [
  'x\r\n{}\r\n0\r\n\r\n',
  '-2\r\n{}\r\n0\r\n\r\n',
  '0x2\r\n{}\r\n0\r\n\r\n',
  'ffffffffffffffffff\r\n{}',
  '2\r\n{}}\r\n0\r\n\r\n',
  '2 \u001b\r\n{}\r\n0\r\n\r\n',
];

export const encodings = family(
  'an encoding',
  codings.map(([name, coding, encode]) => ({
    name,
    to: 'map',
    outcome: refused,
    make: (request) => whole({ headers: [jsonType, `Content-Encoding: ${coding}`], body: encode(trueMap(request)) }),
  })),
);

export const contentTypesOf = family(
  'a content type',
  contentTypes.map(
    (type): Row => ({
      name: named(type),
      to: 'map',
      outcome: type.includes('\u001b') ? unreachable : refused,
      make: (request) => whole({ headers: [`Content-Type: ${type}`], body: trueMap(request) }),
    }),
  ),
);

export const framing = family('framing', [
  ...heads.map(headRow),
  ...retriedHeads.map((row): Row => ({ ...headRow(row), slow: true })),
  ...statusLines.map((line) =>
    quick(
      `a first line ${named(line)}`,
      Buffer.from(`${line}\r\n${jsonType}\r\nContent-Length: 2\r\n\r\n{}`, 'latin1'),
    ),
  ),
  ...odd.map(
    (line): Row => ({
      ...quick(
        `a first line ${named(line)}`,
        Buffer.from(`${line}\r\n${jsonType}\r\nContent-Length: 2\r\n\r\n{}`, 'latin1'),
      ),
      outcome: refused,
    }),
  ),
  ...badChunks.map(
    (body): Row => ({ name: `a chunk ${named(body)}`, to: 'map', outcome: unreachable, make: always(chunks(body)) }),
  ),
  short('a body cut short by one byte', (text) =>
    whole({ headers: [jsonType, `Content-Length: ${Buffer.byteLength(text) - 1}`], body: text, measured: false }),
  ),
  short('an empty body without a length', () => whole({ headers: [jsonType], measured: false })),
]);

function headRow([name, head]: (typeof heads)[number]): Row {
  return quick(name, Buffer.from(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n2\r\n{}\r\n0\r\n\r\n`, 'latin1'));
}

function quick(name: string, bytes: Buffer): Row {
  return { name, to: 'map', outcome: unreachable, make: always({ bytes: [bytes], ending: 'end' }) };
}

function short(name: string, make: (text: string) => WireReply): Row {
  return { name, to: 'map', outcome: refused, make: (request) => make(trueMap(request)) };
}

/** With one changed byte in the checksum. */
function spoil(bytes: Buffer): Buffer {
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 8) ^ 1, bytes.length - 8);
  return bytes;
}

const begun = '{"data":{"id":7,"peers":[';

/** Replies that never end, or break off: the host retries until its deadline. */
const endings: readonly (readonly [string, WireReply])[] = [
  ['a head, a byte at a time', { bytes: [Buffer.from('HTTP/1.1 200 OK\r\nX: ')], ending: 'drip' }],
  ['a body, a byte at a time', { bytes: [raw({ measured: false }), Buffer.from(begun)], ending: 'drip' }],
  ['a first line, and no more', { bytes: [Buffer.from('HTTP/1.1 200 OK\r\n')], ending: 'hang' }],
  ['nothing', { bytes: [], ending: 'hang' }],
  ['half of a body, and no more', { bytes: [raw({ measured: false }), Buffer.from(begun)], ending: 'hang' }],
  [
    'less than was promised, and the end',
    whole({ headers: [jsonType, 'Content-Length: 5000'], body: begun, measured: false }),
  ],
  [
    'less than was promised, and a reset',
    { bytes: [Buffer.from(`HTTP/1.1 200 OK\r\n${jsonType}\r\nContent-Length: 5001\r\n\r\n${begun}`)], ending: 'reset' },
  ],
  ['the end of the connection', { bytes: [], ending: 'end' }],
  ['a reset in the head', { bytes: [Buffer.from('HTTP/1.1 200')], ending: 'reset' }],
  ['chunks without a last one', chunks(`3\r\n{"d\r\n`)],
  ['a chunk shorter than it says', chunks(`ff\r\n${begun}`)],
  [
    'a switch of protocols',
    whole({ status: '101 Switching Protocols', headers: ['Connection: upgrade', 'Upgrade: owned'], measured: false }),
  ],
  ['that it goes on, and nothing after', { bytes: [Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')], ending: 'hang' }],
  [
    'hints, and nothing after',
    { bytes: [Buffer.from('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n')], ending: 'hang' },
  ],
];

export const slow = family(
  'a reply that does not end',
  endings.map(([name, reply]) => ({
    name,
    to: 'map',
    outcome: unreachable,
    slow: true,
    make: always(reply),
  })),
);
