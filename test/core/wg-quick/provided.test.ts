import { describe, expect, it } from 'vitest';
import { parseProvidedConfig } from '../../../src/core/wg-quick/provided-config.ts';
import { settlePeers } from '../../../src/core/wg-quick/settle-peers.ts';
import { address, keyPair } from '../samples.ts';

const [one, other] = [keyPair(1).publicKey, keyPair(2).publicKey];
const parse = (own: string, ...peers: string[]) =>
  parseProvidedConfig(['[Interface]', own, ...peers.flatMap((peer) => ['[Peer]', peer])].join('\n'));
const peerOf = (text: string) => parse('', `PublicKey = ${one}\n${text}`).peers[0];

describe('a text of a service', () => {
  it.each([
    ['Address = 10.77.0.2/24', { address: '10.77.0.2', length: 24 }],
    ['Address = 10.77.0.2', { address: '10.77.0.2', length: 32 }],
    ['Address = fd00::2/64, 10.77.0.2/24', { address: '10.77.0.2', length: 24 }],
    ['Address = 10.77.0.2/24\nAddress = 10.78.0.2/24', { address: '10.77.0.2', length: 24 }],
    ['', null],
  ])('has the first IPv4 address, with a length as in wg-quick: %j', (text, found) => {
    expect(parse(text).address).toEqual(found);
  });

  it.each([
    ['', false],
    ['Table = off', true],
    ['Table = OFF', true],
    ['Table = auto', false],
    ['Table = auto\nTable = off', true],
    ['Table = off\nTable = auto', false],
    ['Table = 51820', false],
  ])('makes no routes by its last table alone: %j', (text, isOff) => expect(parse(text).isTableOff).toBe(isOff));

  it('has at most sixteen name servers and domains, and a remark about more', () => {
    const names = Array.from({ length: 17 }, (_, at) => `10.0.0.${at}`);
    expect(parse(`DNS = ${names.slice(0, 16).join(', ')}`)).toMatchObject({ dns: names.slice(0, 16), remarks: [] });
    const { dns, remarks } = parse(`DNS = ${names.join(', ')}`);
    expect([dns, remarks]).toEqual([names.slice(0, 16), ['DNS of line 2 has more than addresses and domains']]);
  });

  it('has of each key of a peer that is no list the last value', () => {
    expect(peerOf('Endpoint = 192.0.2.1:1\nEndpoint = 192.0.2.2:2')?.endpoint).toEqual({ host: '192.0.2.2', port: 2 });
    expect(peerOf('PersistentKeepalive = 5\nPersistentKeepalive = 7')?.keepalive).toBe(7);
    expect(peerOf('AllowedIPs = 10.0.0.1\nAllowedIPs = 10.0.0.2/32')?.allowedIps).toEqual([
      '10.0.0.1/32',
      '10.0.0.2/32',
    ]);
    expect(parse('', `PublicKey = ${one}\nPublicKey = ${other}`).peers[0]?.publicKey).toBe(other);
  });

  it.each([
    ['0', null],
    ['off', null],
    ['OFF', null],
    ['1', 1],
    ['65535', 65535],
    ['65536', undefined],
    ['-1', undefined],
    ['25s', undefined],
  ])('has a keepalive up to 65535 s, or skips the peer: %s', (text, keepalive) => {
    expect(peerOf(`PersistentKeepalive = ${text}`)?.keepalive).toBe(keepalive);
  });

  it('has each prefix once, and drops zeros before its length', () => {
    expect(peerOf('AllowedIPs = 10.0.0.1, 10.0.0.1/32\nAllowedIPs = 10.0.0.1/032')?.allowedIps).toEqual([
      '10.0.0.1/32',
    ]);
    expect(peerOf('AllowedIPs = 10.0.0.5/08, 0.0.0.0/0, 0.0.0.0/00')?.allowedIps).toEqual(['10.0.0.0/8', '0.0.0.0/0']);
  });

  it('has the last private key, and remarks that it repeats one, but no value that this host sets', () => {
    const [first, last] = [keyPair(3), keyPair(4)];
    const twice = `PrivateKey = ${first.privateKey.reveal()}\nPrivateKey = ${last.privateKey.reveal()}`;
    expect(parse(twice)).toMatchObject({
      publicKey: last.publicKey,
      remarks: ['line 3 repeats PrivateKey; the last one counts'],
    });
    expect(parse('ListenPort = 1\nListenPort = 2\nMTU = 1\nMTU = 2\nFwMark = 1\nFwMark = 2').remarks).toEqual([]);
  });

  it('may have several [Interface]s, which add up, and sections of another kind, which are skipped', () => {
    const text = [
      '[Interface]',
      'Address = 10.77.0.2/24',
      '[Tunnel]',
      'Address = 10.99.0.2',
      'Anything = 1',
      '[Interface]',
      'DNS = 10.0.0.1',
    ];
    expect(parseProvidedConfig([...text, '[Peer]', `PublicKey = ${one}`].join('\n'))).toMatchObject({
      address: { address: '10.77.0.2', length: 24 },
      dns: ['10.0.0.1'],
      peers: [{ publicKey: one }],
      remarks: [
        'line 3 begins neither [Interface] nor [Peer], and the section is skipped',
        'line 6 begins another [Interface], which adds to the first one',
      ],
    });
  });

  it('has no peer whose key is a point of low order, and names its key', () => {
    const weak = Buffer.alloc(32).toString('base64');
    const { peers, skipped } = parse('', `PublicKey = ${weak}`, `PublicKey = ${one}`);
    expect([peers.map(({ publicKey }) => publicKey), skipped.map(({ publicKey }) => publicKey)]).toEqual([
      [one],
      [weak],
    ]);
  });

  it.each(['Jc', 'Jmin', 'Jmax', 'I1', 'I5', 'J1', 'J3', 'Itime'])(
    'may have %s of AmneziaWG, which adds packets',
    (key) => expect(parse(`${key} = 5`).remarks).toEqual([expect.stringContaining(`${key} of line 2`)]),
  );

  it.each(['S1', 'S2', 'S3', 'S4', 'H1', 'H2', 'H3', 'H4'])(
    'is refused with %s of AmneziaWG, which changes packets, unless it is that of WireGuard',
    (key) => {
      const usual = key.startsWith('S') ? '0' : key.slice(1);
      expect(() => parse(`${key} = 9`)).toThrow(`${key} of line 2 changes the packets`);
      expect(parse(`${key} = ${usual}`).remarks).toHaveLength(1);
    },
  );
});

describe('the peers of a text', () => {
  const own = { publicKey: keyPair(9).publicKey, address: address('10.77.0.9') };
  const settle = (...peers: string[]) => settlePeers(parse('', ...peers), own);
  const shown = ({ peers }: ReturnType<typeof settle>) =>
    peers.map(({ publicKey, allowedIps }) => [publicKey, allowedIps]);

  it('with one key are the last of them', () => {
    const twice = settle(`PublicKey = ${one}\nAllowedIPs = 10.0.0.1`, `PublicKey = ${one}\nAllowedIPs = 10.0.0.2`);
    expect(shown(twice)).toEqual([[one, ['10.0.0.2/32']]]);
    expect(twice.remarks).toEqual(['of two [Peer]s with one key, the last one counts']);
  });

  it('with one prefix leave it to the last of them', () => {
    const both = settle(
      `PublicKey = ${one}\nAllowedIPs = 10.0.0.0/8, 10.9.0.0/16`,
      `PublicKey = ${other}\nAllowedIPs = 10.0.0.0/8`,
    );
    expect(shown(both)).toEqual([
      [one, ['10.9.0.0/16']],
      [other, ['10.0.0.0/8']],
    ]);
    expect(both.remarks).toEqual(['AllowedIPs of two [Peer]s are those of the last one']);
  });

  it('keep the prefixes of sections that are not used', () => {
    const kept = [[one, ['10.0.0.0/8']]];
    expect(
      shown(
        settle(`PublicKey = ${one}\nAllowedIPs = 10.0.0.0/8`, `PublicKey = ${own.publicKey}\nAllowedIPs = 10.0.0.0/8`),
      ),
    ).toEqual(kept);
    const again = `PublicKey = ${one}\nAllowedIPs = 10.0.0.0/8`;
    expect(shown(settle(again, `PublicKey = ${other}\nAllowedIPs = 10.0.0.0/8`, again))).toEqual(
      [...kept, [other, []]].toReversed(),
    );
  });

  it('are neither this host nor its address', () => {
    const self = settle(`PublicKey = ${own.publicKey}`, `PublicKey = ${one}\nAllowedIPs = 10.77.0.9, 10.77.0.0/24`);
    expect(shown(self)).toEqual([[one, ['10.77.0.0/24']]]);
    expect(self.remarks).toHaveLength(2);
  });
});
