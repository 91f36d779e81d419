import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PublicKey } from '../../../src/core/crypto/keys.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { CpnError, InvalidValue } from '../../../src/core/errors/index.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { parseDump } from '../../../src/host/wireguard/dump.ts';
import { removalArgs, renderDevice } from '../../../src/host/wireguard/wg.ts';
import { at, makePeer, newKeyPair, newPresharedKey } from '../samples.ts';

const step = { do: 'configure-device', link: 'cpn0' } as const;

/** Lines as wg 1.0.20210914 printed them, with keys of this run. */
function dumpOf(...lines: readonly (readonly (string | number)[])[]): string {
  return lines.map((fields) => `${fields.join('\t')}\n`).join('');
}

describe('parseDump', () => {
  const self = newKeyPair();
  const [one, two, three] = [newKeyPair().publicKey, newKeyPair().publicKey, newKeyPair().publicKey];

  test('reads an interface and its peers', () => {
    const presharedKey = newPresharedKey();
    const text = dumpOf(
      [self.privateKey.reveal(), self.publicKey, 51820, '0x209d'],
      [one, presharedKey.reveal(), '203.0.113.22:51820', '10.77.0.2/32,192.168.7.0/24', 1763677842, 4312, 1880, 25],
      [two, '(none)', '[2001:db8::1]:3', '10.0.0.0/24,fd00::/64', 0, 0, 0, 'off'],
      [three, '(none)', '(none)', '(none)', 0, 0, 148, 'off'],
    );
    expect(parseDump(text)).toEqual({
      publicKey: self.publicKey,
      listenPort: 51820,
      fwmark: 0x209d,
      peers: [
        {
          publicKey: one,
          presharedKey,
          endpoint: { host: '203.0.113.22', port: 51820 },
          allowedIps: ['10.77.0.2/32', '192.168.7.0/24'],
          keepalive: 25,
          latestHandshake: 1763677842,
          rxBytes: 4312,
          txBytes: 1880,
        },
        {
          publicKey: two,
          presharedKey: null,
          endpoint: { host: '2001:db8::1', port: 3 },
          allowedIps: ['10.0.0.0/24', 'fd00::/64'],
          keepalive: null,
          latestHandshake: null,
          rxBytes: 0,
          txBytes: 0,
        },
        expect.objectContaining({
          publicKey: three,
          endpoint: null,
          allowedIps: [],
          latestHandshake: null,
          txBytes: 148,
        }),
      ],
    });
  });

  test('reads an interface without a key', () => {
    expect(parseDump('(none)\t(none)\t48133\toff\n')).toEqual({
      publicKey: null,
      listenPort: 48133,
      fwmark: null,
      peers: [],
    });
  });

  test.each([
    ['[fe80::1%eth0]:51820', { host: 'fe80::1', port: 51820 }],
    ['[::ffff:1.2.3.4]:3', { host: '1.2.3.4', port: 3 }],
    ['192.0.2.1:0', { host: '192.0.2.1', port: 0 }],
  ])('accepts %s as an endpoint, because wg does', (endpoint, expected) => {
    const text = dumpOf(['(none)', '(none)', 0, 'off'], [one, '(none)', endpoint, '(none)', 0, 0, 0, 'off']);
    expect(parseDump(text).peers[0]?.endpoint).toEqual(expected);
  });

  test('normalizes allowed IPs, and keeps an IPv4-mapped prefix as it is', () => {
    const allowed = '10.0.0.5/24,2001:DB8::/32,::ffff:1.2.3.0/120';
    const text = dumpOf(['(none)', '(none)', 0, 'off'], [one, '(none)', '(none)', allowed, 0, 0, 0, 'off']);
    expect(parseDump(text).peers[0]?.allowedIps).toEqual(['10.0.0.0/24', '2001:db8::/32', '::ffff:1.2.3.0/120']);
  });

  test.each([
    '',
    '\n',
    'x',
    'a\tb\tc',
    '(none)\t(none)\tport\toff',
    '(none)\t(none)\t1\t8349',
    '(none)\tkey\t1\toff',
    '(none)\t(none)\t1\toff\nx\ty',
  ])('refuses %j', (text) => {
    expect(() => parseDump(text)).toThrow(InvalidValue);
  });

  test('never shows the private key, whatever follows it', () => {
    const canary = self.privateKey.reveal();
    for (const rest of ['', '\t', '\t(none)', '\tx\ty\tz', `\t(none)\t1\toff\n${one}\t${canary}\tx`]) {
      expect(() => parseDump(`${canary}${rest}`)).toThrow(expect.not.stringContaining(canary));
    }
  });

  test('refuses an invalid preshared key, and does not show it', () => {
    const canary = newPresharedKey().reveal().slice(1);
    const text = dumpOf(['(none)', '(none)', 0, 'off'], [one, canary, '(none)', '(none)', 0, 0, 0, 'off']);
    expect(() => parseDump(text)).toThrow(InvalidValue);
    expect(() => parseDump(text)).toThrow(expect.not.stringContaining(canary));
  });

  test('throws nothing but a CpnError', () => {
    const field = fc.oneof(fc.string(), fc.constantFrom('(none)', 'off', '0', self.publicKey, '10.0.0.0/8', '[::1]:1'));
    const line = fc.array(field, { maxLength: 9 }).map((fields) => fields.join('\t'));
    fc.assert(
      fc.property(fc.array(line, { maxLength: 4 }), (lines) => {
        expectOnlyCpnErrors(() => parseDump(lines.join('\n')));
      }),
    );
  });
});

describe('renderDevice', () => {
  test('renders each value, and empty ones so that they are cleared', () => {
    const [one, two] = [newKeyPair(), newKeyPair()];
    const presharedKey = newPresharedKey();
    const peers = [
      makePeer({
        publicKey: one.publicKey,
        presharedKey,
        endpoint: at('2001:db8::1', 51820),
        allowedIps: [parsePrefix('10.77.0.2/32'), parsePrefix('fd00::/64')],
        keepalive: 25,
      }),
      makePeer({ publicKey: two.publicKey, allowedIps: [] }),
    ];
    const text = renderDevice({ ...step, privateKey: one.privateKey, listenPort: 51820, fwmark: 0x209d, peers });
    expect(text.reveal()).toBe(`[Interface]
PrivateKey = ${one.privateKey.reveal()}
ListenPort = 51820
FwMark = 0x209d
[Peer]
PublicKey = ${one.publicKey}
PresharedKey = ${presharedKey.reveal()}
AllowedIPs = 10.77.0.2/32, fd00::/64
Endpoint = [2001:db8::1]:51820
PersistentKeepalive = 25
[Peer]
PublicKey = ${two.publicKey}
PresharedKey = AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
PersistentKeepalive = off
`);
    expect(`${text}`).toBe('[secret]');
  });

  test('leaves out unchanged settings', () => {
    expect(renderDevice({ ...step, peers: [] }).reveal()).toBe('\n');
    expect(renderDevice({ ...step, listenPort: 1, peers: [] }).reveal()).toBe('[Interface]\nListenPort = 1\n');
    expect(renderDevice({ ...step, fwmark: null, peers: [] }).reveal()).toBe('[Interface]\nFwMark = off\n');
  });

  test('refuses an invalid key, and does not show it', () => {
    const key = new Secret('canary\n[Interface]\nPostUp=id');
    for (const bad of [{ privateKey: key, peers: [] }, { peers: [makePeer({ presharedKey: key })] }]) {
      expect(() => renderDevice({ ...step, ...bad })).toThrow(InvalidValue);
      expect(() => renderDevice({ ...step, ...bad })).toThrow(expect.not.stringContaining('canary'));
    }
    const publicKey = 'x\n[Interface]' as PublicKey;
    expect(() => renderDevice({ ...step, peers: [makePeer({ publicKey })] })).toThrow(InvalidValue);
  });
});

test('peers are removed with one call, or with several that each fit an argument list', () => {
  const { publicKey } = newKeyPair();
  const remove = (count: number) =>
    removalArgs({ do: 'remove-peers', link: 'cpn0', publicKeys: Array(count).fill(publicKey) });
  expect(remove(2)).toEqual([['set', 'cpn0', 'peer', publicKey, 'remove', 'peer', publicKey, 'remove']]);
  const calls = remove(2001);
  expect(calls.map((args) => args.length)).toEqual([3002, 3002, 5]);
  expect(calls.every((args) => args.join(' ').length < 128 * 1024)).toBe(true);
});

function expectOnlyCpnErrors(attempt: () => unknown): void {
  try {
    attempt();
  } catch (error) {
    expect(error).toBeInstanceOf(CpnError);
  }
}
