import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CpnError, InvalidValue } from '../../../src/core/errors/index.ts';
import { digestDevices } from '../../../src/host/wireguard/digest-devices.ts';
import { newKeyPair, newPresharedKey } from '../samples.ts';

const self = newKeyPair();
const [one, two] = [newKeyPair().publicKey, newKeyPair().publicKey];
const presharedKey = newPresharedKey().reveal();

const device = ['wg0', self.privateKey.reveal(), self.publicKey, '51820', 'off'];
const peer = ['wg0', one, '(none)', '203.0.113.2:51820', '10.0.0.2/32,10.1.0.0/16', '1763677842', '92', '180', '25'];
const other = ['wg0', two, presharedKey, '(none)', '(none)', '0', '0', '148', 'off'];

/** The text of `wg show all dump`. */
const dumpOf = (...lines: readonly (readonly string[])[]) => lines.map((fields) => `${fields.join('\t')}\n`).join('');
const digest = (...lines: readonly (readonly string[])[]) => digestDevices(dumpOf(...lines)).get('wg0');
/** A line with another word in one field. */
const put = (line: readonly string[], at: number, word: string) => line.with(at, word);

describe('digestDevices', () => {
  const before = digest(device, peer, other);

  test('separates links, and has only digests of keys', () => {
    const elsewhere = [device, peer].map((line) => put(line, 0, 'wg1'));
    const digests = digestDevices(dumpOf(device, peer, other, ...elsewhere, ['wg2', '(none)', '(none)', '0', 'off']));
    expect([...digests.keys()]).toEqual(['wg0', 'wg1', 'wg2']);
    expect(digests.get('wg0')).toBe(before);
    expect(new Set(digests.values()).size).toBe(3);
    for (const text of digests.values()) expect(text).toMatch(/^[\w+/]{43}=$/);
    expect(digestDevices('')).toEqual(new Map());
  });

  test('ignores what changes by itself', () => {
    const same = [
      digest(device, other, peer),
      digest(device, put(peer, 3, '198.51.100.9:4000'), other),
      digest(device, put(peer, 4, '10.1.0.0/16,10.0.0.2/32'), other),
      digest(device, put(put(put(peer, 5, '1763677999'), 6, '93'), 7, '181'), other),
    ];
    expect(new Set(same)).toEqual(new Set([before]));
  });

  test('differs with each part of the configuration', () => {
    const different = [
      digest(put(device, 1, newKeyPair().privateKey.reveal()), peer, other),
      digest(put(device, 1, '(none)'), peer, other),
      digest(put(device, 2, '(none)'), peer, other),
      digest(put(device, 3, '51821'), peer, other),
      digest(put(device, 4, '0x7'), peer, other),
      digest(device, put(peer, 1, newKeyPair().publicKey), other),
      digest(device, put(peer, 2, presharedKey), other),
      digest(device, peer, put(other, 2, '(none)')),
      digest(device, put(peer, 4, '10.0.0.2/32'), other),
      digest(device, put(peer, 4, '(none)'), other),
      digest(device, put(peer, 8, 'off'), other),
      digest(device, peer),
      digest(device),
    ];
    expect(new Set([before, ...different]).size).toBe(different.length + 1);
  });

  test.each([dumpOf(peer), dumpOf(device, peer.slice(1)), dumpOf(device, device), dumpOf([...device, 'x'])])(
    'refuses a text of another form, and shows no key of it',
    (text) => {
      expect(() => digestDevices(text)).toThrow(InvalidValue);
      expect(() => digestDevices(text)).toThrow(expect.not.stringContaining(self.privateKey.reveal()));
    },
  );

  test('throws nothing but a CpnError', () => {
    const line = fc.array(fc.oneof(fc.string(), fc.constantFrom('wg0', 'wg1', 'off')), { maxLength: 10 });
    fc.assert(
      fc.property(fc.array(line, { maxLength: 4 }), (lines) => {
        try {
          digestDevices(dumpOf(...lines));
        } catch (error) {
          expect(error).toBeInstanceOf(CpnError);
        }
      }),
    );
  });
});
