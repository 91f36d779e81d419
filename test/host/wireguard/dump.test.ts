import { describe, expect, test } from 'vitest';
import { dumpReader, parseDump } from '../../../src/host/wireguard/dump.ts';
import { newKeyPair } from '../samples.ts';

const { privateKey, publicKey } = newKeyPair();
const head = [privateKey.reveal(), publicKey, 51820, 'off'].join('\t');
const lines = [1, 2, 3].map((number) =>
  [newKeyPair().publicKey, '(none)', '(none)', `10.77.0.${number}/32`, 0, 0, 0, 'off'].join('\t'),
);
const textOf = (...rest: readonly string[]) => `${[head, ...rest].join('\n')}\n`;

describe('dumpReader', () => {
  test('keeps the order of the peers of the last dump where nothing but the order differs', () => {
    const read = dumpReader();
    const device = read(textOf(...lines));
    expect(device).toEqual(parseDump(textOf(...lines)));
    expect(read(textOf(...lines.toReversed()))).toEqual(device);
  });

  test('parses only the lines that differ from the last dump', () => {
    const read = dumpReader();
    const before = read(textOf(...lines));
    const heard = lines.map((line, at) => (at === 1 ? line.replace('\t0\t0\t0\t', '\t1763677842\t92\t148\t') : line));
    const after = read(textOf(...heard));
    expect(after).toEqual(parseDump(textOf(...heard)));
    expect(after.peers.map((peer, at) => peer === before.peers[at])).toEqual([true, false, true]);
    expect(read(textOf(...lines.slice(1))).peers).toEqual(before.peers.slice(1));
    expect(read(textOf(...lines).replace('\toff\n', '\t0x209d\n')).fwmark).toBe(0x209d);
  });
});
