import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import type { Address, Prefix } from '../../../src/core/net/cidr.ts';
import { type DesiredPeer, parseConfig } from '../../../src/core/wg-quick/parse.ts';
import { renderConfig } from '../../../src/core/wg-quick/render.ts';
import { address, keyPair } from '../samples.ts';
import { configs } from './tunnel-configs.ts';

const valid = renderConfig({
  privateKey: keyPair(1).privateKey,
  listenPort: 51820,
  fwmark: null,
  mtu: 1420,
  address: { address: address('10.77.0.2'), length: 24 },
  peers: [
    {
      publicKey: keyPair(2).publicKey,
      presharedKey: null,
      endpoint: { host: address('203.0.113.1'), port: 51820 },
      allowedIps: [],
      keepalive: 25,
    },
  ],
});

describe('the wg-quick file', () => {
  it('reads back as what was written', () => {
    fc.assert(
      fc.property(configs, (config) => renderConfig(parseConfig(renderConfig(config))) === renderConfig(config)),
    );
  });

  it('has a mark as wg prints it, and reads it as the same number', () => {
    const config = parseConfig(valid);
    for (const fwmark of [1, 0x209d, 0xffff_ffff]) {
      const text = renderConfig({ ...config, fwmark });
      expect(text).toContain(`\nFwMark = 0x${fwmark.toString(16)}\n`);
      expect(parseConfig(text).fwmark).toBe(fwmark);
    }
  });

  it('holds nothing but the keys that it needs', () => {
    fc.assert(
      fc.property(configs, (config) => {
        const keys = renderConfig(config)
          .split('\n')
          .filter((line) => line !== '' && !/^[#[]/.test(line))
          .map((line) => line.split(' ')[0]);
        const known = [
          'PrivateKey',
          'Address',
          'ListenPort',
          'FwMark',
          'MTU',
          'PublicKey',
          'PresharedKey',
          'AllowedIPs',
          'Endpoint',
          'PersistentKeepalive',
        ];
        expect(known).toEqual(expect.arrayContaining(keys));
      }),
    );
  });

  it.each([
    ['a hook', (text: string) => text.replace('MTU = 1420', 'PostUp = reboot')],
    ['a hook in other letters', (text: string) => text.replace('MTU = 1420', 'pOsTuP = reboot')],
    ['a hook behind a NUL', (text: string) => text.replace('MTU = 1420', 'Post\0Up = reboot')],
    ['a hook behind a CR', (text: string) => text.replace('MTU = 1420', 'MTU = 1420\rPostUp = reboot')],
    ['another table', (text: string) => text.replace('MTU = 1420', 'Table = off')],
    ['a saved config', (text: string) => text.replace('MTU = 1420', 'SaveConfig = true')],
    ['a resolver', (text: string) => text.replace('MTU = 1420', 'DNS = 10.0.0.1')],
    ['a glob as the address', (text: string) => text.replace('10.77.0.2/24', '/etc/host*')],
    ['an address with two lengths', (text: string) => text.replace('10.77.0.2/24', '10.77.0.2/24/x y')],
    ['an address with the length of another family', (text: string) => text.replace('10.77.0.2/24', '10.77.0.2/64')],
    ['a key with bits too many', (text: string) => text.replace(/PrivateKey = .*/, `PrivateKey = ${'A'.repeat(42)}B=`)],
    [
      'a preshared key with bits too many',
      (text: string) => text.replace('[Peer]', `[Peer]\nPresharedKey = ${'A'.repeat(42)}B=`),
    ],
    ['a second [Interface]', (text: string) => `${text}\n[Interface]\nMTU = 1420\n`],
    ['a section behind a comment', (text: string) => `${text}\n[Interface] # x\nMTU = 1420\n`],
    ['a key twice', (text: string) => text.replace('MTU = 1420', 'MTU = 1420\nMTU = 1300')],
    ['a comment behind a value', (text: string) => text.replace('MTU = 1420', 'MTU = 1420 # x')],
    ['an endpoint that is a name', (text: string) => text.replace('203.0.113.1:51820', 'example.net:51820')],
    ['a keepalive of zero', (text: string) => text.replace('= 25', '= 0')],
    ['a second [Interface] with keys of a peer', (text: string) => text.replace('[Peer]', '[Interface]')],
    ['a section with a tail', (text: string) => text.replace('[Peer]', '[Peer]x')],
    ['a section behind other text', (text: string) => text.replace('[Peer]', 'x[Peer]')],
    ['a comment that is not ASCII', (text: string) => text.replace('MTU', '# \u2028\nMTU')],
    ['a comment behind other text', (text: string) => text.replace('MTU', 'x# y\nMTU')],
    ['a key before any section', (text: string) => `MTU = 1420\n${text}`],
    ['a file without a private key', (text: string) => text.replace(/PrivateKey = .*\n/, '')],
    ['a mark of more than 32 bits', (text: string) => text.replace('MTU', 'FwMark = 0x123456789\nMTU')],
    ['a mark that is none', (text: string) => text.replace('MTU', 'FwMark = 0x0\nMTU')],
    ['a mark that is no number', (text: string) => text.replace('MTU', 'FwMark = 0x1g\nMTU')],
    ['a mark behind other text', (text: string) => text.replace('MTU', 'FwMark = 00x1\nMTU')],
    ['a free MTU', (text: string) => text.replace('1420', '1420; reboot')],
    ['no private key', (text: string) => text.replace(/PrivateKey.*\n/, '')],
    ['a peer without a key', (text: string) => text.replace(/PublicKey.*\n/, '')],
    ['no interface', (text: string) => text.slice(text.indexOf('[Peer]'))],
    ['a key before any section', (text: string) => `MTU = 1420\n${text}`],
    ['leading space', (text: string) => text.replace('MTU', ' MTU')],
    ['host bits', (text: string) => text.replace('Endpoint', 'AllowedIPs = 10.0.0.5/24\nEndpoint')],
  ])('refuses %s', (_what, spoil) => {
    expect(spoil(valid)).not.toBe(valid);
    expect(() => parseConfig(spoil(valid))).toThrow(InvalidValue);
  });

  it('names the line that it refuses', () => {
    expect(() => parseConfig(valid.replace('MTU = 1420', 'PostUp = reboot'))).toThrow(/^line 6 of the wg-quick file/);
  });

  it('is not written where it would read back as another configuration', () => {
    const config = parseConfig(valid);
    const [first] = config.peers as [DesiredPeer];
    const spelled = <Value>(text: string) => text as Value;
    for (const change of [
      { allowedIps: [spelled<Prefix>('10.0.0.0/8, 192.168.0.0/16')] },
      { allowedIps: [spelled<Prefix>('10.0.0.1/8')] },
      { keepalive: spelled<number>('25') },
      { presharedKey: new Secret('') },
      { endpoint: { host: spelled<Address>('2001:DB8::1'), port: 51820 } },
    ]) {
      expect(() => renderConfig({ ...config, peers: [{ ...first, ...change }] })).toThrow();
    }
    expect(() => renderConfig({ ...config, mtu: spelled<number>('1420') })).toThrow(/does not read back/);
  });

  it('throws nothing but InvalidValue, whatever it is given', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => valid.replace('1420', text)),
        ),
        (text) => {
          try {
            parseConfig(text);
          } catch (error) {
            expect(error).toBeInstanceOf(InvalidValue);
          }
        },
      ),
    );
  });

  it('never shows a private key in an error', () => {
    const canary = keyPair(1).privateKey.reveal();
    expect(valid).toContain(canary);
    expect(() => parseConfig(valid.replace(canary, `${canary}x`))).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining(canary) }),
    );
    expect(() => renderConfig({ ...parseConfig(valid), privateKey: new Secret(`${canary}\nPostUp = x`) })).toThrow(
      InvalidValue,
    );
  });
});
