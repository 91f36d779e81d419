import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeEnrollment } from '../../../src/api/decode/enrollment.ts';
import { BadReply } from '../../../src/core/errors/index.ts';
import { keyPair } from '../../core/samples.ts';
import { bounded } from '../../fuzz/time-bound.ts';
import { keyOf, source } from '../samples.ts';

const { publicKey, privateKey } = keyPair(1);
const asked = { publicKey, name: 'host-1', type: 'origin', endpoint: null } as const;
const decode = (body: unknown, changes: object = {}) => decodeEnrollment(body, source, { ...asked, ...changes });

/** A text as a service may hand it out: a gateway, a peer with a LAN, and a peer alone. */
const text = `# made for you
[Interface]
PrivateKey = <YOUR_PRIVATE_KEY>
Address=10.77.0.5/24
MTU = 1380

[Peer]   # the gateway
publickey = ${keyOf('gate')}
PresharedKey = ${keyOf('psk')}
AllowedIPs = 10.77.0.0/24
Endpoint = Gate.example.net:51820
PersistentKeepalive = 25

[Peer]
PublicKey = ${keyOf('site')}
AllowedIPs = 10.77.0.9, 192.168.50.7/24
AllowedIPs = 172.20.0.0/16
[Peer]
PublicKey = ${keyOf('lone')}
AllowedIPs = 10.77.0.10/32
Endpoint = 203.0.113.9:51820
PersistentKeepalive = off
`.replaceAll('\n', '\r\n');

/** So many routes. */
const many = (count: number) => Array.from({ length: count }, (_, n) => `172.${n >> 8}.${n & 255}.0/24`).join(', ');

function refusalOf(body: unknown): string {
  try {
    decode(body);
  } catch (error) {
    expect(error).toBeInstanceOf(BadReply);
    return (error as BadReply).message;
  }
  throw new Error('the body was read');
}

describe('a ready wg-quick text', () => {
  test('becomes the map: peers by their addresses, and what they carry beyond the range as routes', () => {
    const { peer, map } = decode({ data: { config: text, network: { id: 7, name: 'office' } } });
    expect(peer).toEqual({ id: publicKey, name: 'host-1', address: '10.77.0.5' });
    expect(map).toMatchObject({ id: 7, name: 'office', cidr: '10.77.0.0/24', revision: null });
    expect(map.routes).toEqual(['192.168.50.0/24', '172.20.0.0/16']);
    const [gate, site, lone, self] = map.peers;
    expect(gate).toMatchObject({
      // It has no address of its own and gets the first free one.
      ...{ id: keyOf('gate'), name: '10.77.0.1', address: '10.77.0.1', type: 'origin' },
      endpoint: { host: 'gate.example.net', port: 51820 },
      given: { allowedIps: ['10.77.0.0/24'], keepalive: 25 },
    });
    expect(gate?.given?.presharedKey?.reveal()).toBe(keyOf('psk'));
    expect(site).toMatchObject({
      ...{ name: '10.77.0.9', type: 'connector', endpoint: null, routes: ['192.168.50.0/24', '172.20.0.0/16'] },
      given: { allowedIps: ['10.77.0.9/32', '192.168.50.0/24', '172.20.0.0/16'], presharedKey: null, keepalive: null },
    });
    expect(lone).toMatchObject({ name: '10.77.0.10', type: 'origin', routes: [], given: { keepalive: null } });
    expect(self).toMatchObject({ publicKey, name: 'host-1', unlisted: true });
  });

  test.each([
    ['alone', { config: text }],
    ['in the network', { network: { config: text } }],
    ['in the peer', { peer: { address: '10.77.0.5', config: text }, network: {} }],
    ['next to an empty list of peers', { peer: { address: '10.77.0.5/24' }, network: { peers: [] }, config: text }],
  ])('may stand %s', (_, body) => {
    expect(decode(body).map.peers).toEqual(decode({ config: text }).map.peers);
  });

  test('is not needed where the peers are listed', () => {
    const peers = [{ public_key: keyOf(2), address: '10.77.0.2' }];
    const { map } = decode({ peer: { address: '10.77.0.5' }, network: { peers }, config: 'no text at all' });
    expect(map.peers.map(({ name, given }) => [name, given])).toEqual([
      ['10.77.0.2', undefined],
      ['host-1', undefined],
    ]);
  });

  test('of a connector leaves to it the advertised routes that no other peer carries', () => {
    const network = { routes: ['192.168.50.0/24', '192.168.60.0/24'] };
    const { map } = decode({ config: text, network }, { type: 'connector' });
    expect(map.peers.at(-1)).toMatchObject({ type: 'connector', routes: ['192.168.60.0/24'] });
  });

  test('may hold the private key itself, which is this host’s', () => {
    const filled = text.replace('<YOUR_PRIVATE_KEY>', privateKey.reveal());
    expect(decode({ config: filled }).map).toEqual(decode({ config: text }).map);
  });
});

describe('other settings of a text', () => {
  const canary = 'canary-value';
  const insert = (line: string) => text.replace('MTU = 1380', line);
  test.each([
    ['a hook', insert(`PostUp = ${canary} \u2028 # \u0000`), 'PostUp of line 5 is a hook, and hooks are never run'],
    ['a hook in other letters', insert(`predown=${canary}`), 'predown of line 5 is a hook'],
    ['SaveConfig', insert('SaveConfig = true'), 'SaveConfig of line 5 is not used'],
    ['another table', insert('Table = 1234'), 'Table = 1234 of line 5 is not used: routes go to the main table'],
    ['a table that is none', insert('Table = $(x)'), 'Table of line 5 is not used'],
    ['an unknown key', insert(`Canary = ${canary}`), 'Canary of line 5 is not known, and skipped'],
    ['an unknown key of a peer', text.replace('PersistentKeepalive = 25', 'Canary = x'), 'Canary of line 12 is not'],
    ['a key of the other section', insert('AllowedIPs = 10.0.0.0/8'), 'AllowedIPs of line 5 is not known'],
    ['a section of its own', `${text}[Canary]\r\nPublicKey = x`, 'begins neither [Interface] nor [Peer]'],
    ['an IPv6 address', text.replace('10.77.0.5/24', '10.77.0.5/24, fd00::5/64'), 'the IPv6 address is not used'],
    ['a resolver that is none', insert(`DNS = $(${canary})`), 'DNS of line 5 has more than addresses and domains'],
  ])('such as %s, is skipped with a remark, and never repeated', (_, config, remark) => {
    const enrolled = decode({ config });
    expect(enrolled.map.peers.map(({ name }) => name)).toEqual(
      decode({ config: text }).map.peers.map(({ name }) => name),
    );
    expect(enrolled.text?.remarks).toEqual([expect.stringContaining(remark)]);
    expect(JSON.stringify(enrolled)).not.toContain(canary);
  });

  test('about DNS is kept as data', () => {
    const config = insert('DNS = 10.77.0.53, fd00::53\r\nDNS = corp.example.net');
    expect(decode({ config }).text).toEqual({ dns: ['10.77.0.53', 'fd00::53', 'corp.example.net'], remarks: [] });
    expect(decode({ config: text }).text).toBeUndefined();
  });

  test('as Table = off means no routes, and Table = auto means nothing', () => {
    expect(decode({ config: insert('Table = auto') })).toEqual(decode({ config: text }));
    const { map, text: said } = decode({ config: insert('table = OFF') });
    expect(map.routes).toEqual([]);
    expect(map.peers.flatMap(({ given }) => given?.allowedIps ?? [])).toEqual([
      '10.77.0.0/24',
      '10.77.0.9/32',
      '10.77.0.10/32',
    ]);
    expect(said?.remarks).toEqual([expect.stringContaining('Table = off: only routes')]);
  });

  test('is reported up to a readable length', () => {
    const config = insert(Array.from({ length: 1_000 }, (_, index) => `X${index} = 1`).join('\n'));
    expect(decode({ config }).text?.remarks).toHaveLength(21);
    expect(decode({ config }).text?.remarks.at(-1)).toBe('980 more lines are not used');
  });
});

describe('a text of AmneziaWG', () => {
  const insert = (...lines: string[]) => text.replace('MTU = 1380', lines.join('\r\n'));

  test.each([
    ['S1 = 86', 'S1 of line 5 changes the packets'],
    ['s4 = 4', 'S4 of line 5 changes'],
    ['S1 = 0\r\nS1 = 1', 'S1 of line 6 changes'],
    ['H1 = 5', 'H1 of line 5 changes'],
    ['H1 = 2\r\nH2 = 1', 'H1 of line 5, H2 of line 6 change the packets'],
    ['H4 = 4-5', 'H4 of line 5 changes'],
    ['H3 = 479794990-486422101', 'H3 of line 5 changes'],
    ['H1 = x', 'H1 of line 5 changes'],
    ['HeaderProtectionKey = canary', 'HeaderProtectionKey of line 5 changes'],
    ['RandomTrailers = on', 'RandomTrailers of line 5 changes'],
  ])('with %j is refused, because no handshake with it succeeds', (line, problem) => {
    const message = refusalOf({ config: insert(line) });
    expect(message).toContain(`the text is for AmneziaWG, not for WireGuard: ${problem}`);
    expect(message).not.toContain('canary');
  });

  test('is a text of WireGuard where it only sends junk in addition', () => {
    const config = insert(
      'Jc = 4',
      'Jmin = 40',
      'JMAX = 70',
      'S1 = 0',
      'S2=0',
      'H1 = 1',
      'H2 = 2-2',
      'H3 =',
      'I1 = <b 0xc7>',
    );
    expect(decode({ config }).map).toEqual(decode({ config: text }).map);
    const keys = 'Jc of line 5, Jmin of line 6, Jmax of line 7, S1 of line 8, S2 of line 9, H1 of line 10';
    expect(decode({ config }).text?.remarks).toEqual([expect.stringContaining(keys)]);
  });
});

describe('a peer of a text that cannot be used is skipped by line and key, without a value:', () => {
  test.each([
    ['no key', text.replace(/publickey.*/, ''), 'line 7 begins a [Peer] that has no PublicKey', ['site', 'lone']],
    ['a bad key', text.replace(keyOf('site'), 'canary'), 'PublicKey of line 15 is not a WireGuard', ['gate', 'lone']],
    ['a bad preshared key', text.replace(keyOf('psk'), 'canary'), 'PresharedKey of line 9 is not', ['site', 'lone']],
    [
      'a preshared key with bits too many',
      text.replace(keyOf('psk'), `${'A'.repeat(42)}B=`),
      'PresharedKey of line 9 is not 32 bytes in base64',
      ['site', 'lone'],
    ],
    ['a bad range', text.replace('172.20.0.0/16', 'canary'), 'AllowedIPs of line 17 is not', ['gate', 'lone']],
    ['a bad endpoint', text.replace('203.0.113.9:51820', 'canary'), 'Endpoint of line 21 is not', ['gate', 'site']],
    ['an endpoint with a zone', text.replace('203.0.113.9', '[fe80::1%eth0]'), 'line 21 has a zone', ['gate', 'site']],
    [
      'a port of no service',
      text.replace('9:51820', '9:canary'),
      'line 21 has a port that is neither',
      ['gate', 'site'],
    ],
    ['a bad keepalive', text.replace('= 25', '= canary'), 'PersistentKeepalive of line 12 is not', ['site', 'lone']],
    ['no range', text.replace('AllowedIPs = 10.77.0.10/32', ''), 'it has no IPv4 address in its', ['gate', 'site']],
  ])('%s', (_, config, reason, others) => {
    const { map } = decode({ config });
    expect(map.peers.slice(0, -1).map(({ publicKey: key }) => key)).toEqual(others.map(keyOf));
    expect(map.skipped).toEqual([expect.objectContaining({ reason: expect.stringContaining(reason) })]);
    expect(JSON.stringify(map.skipped)).not.toContain('canary');
  });
});

describe('what wg-quick and wg take', () => {
  const endpointOf = (host: string) =>
    decode({ config: text.replace('Gate.example.net', host) }).map.peers.find(({ id }) => id === keyOf('gate'))
      ?.endpoint;

  test.each([
    ['gate.example.net.', 'gate.example.net'],
    ['my_gate', 'my_gate'],
    ['_wg._udp.my_gate.example.net', '_wg._udp.my_gate.example.net'],
    ['GATE.example.NET', 'gate.example.net'],
    ['gäste.example.net', 'xn--gste-loa.example.net'],
    ['203.0.113.9', '203.0.113.9'],
  ])('is an endpoint at %s', (given, host) => expect(endpointOf(given)).toEqual({ host, port: 51820 }));

  test('are blanks between addresses and name servers, and within a value of wg', () => {
    const config = text
      .replace('10.77.0.5/24', '10.77.0.5/24\tfd00::5/64')
      .replace('MTU = 1380', 'DNS = 10.77.0.53  corp.example.net')
      .replace('10.77.0.9, 192.168.50.7/24', '10.77. 0.9 ,192.168.50.7 /24')
      .replace('= off', '= Off');
    const { map, peer, text: said } = decode({ config });
    expect(peer.address).toBe('10.77.0.5');
    expect(map.peers).toEqual(decode({ config: text }).map.peers);
    expect(said).toEqual({ dns: ['10.77.0.53', 'corp.example.net'], remarks: ['the IPv6 address is not used'] });
  });

  test.each([
    [
      'the address of this host among others',
      ['10.77.0.10/32', '10.77.0.10/32, 10.77.0.5/32'],
      'own address',
      'gate site lone',
    ],
    ['the address of this host alone', ['10.77.0.10/32', '10.77.0.5/32'], 'own address', 'gate site'],
    ['the key of this host', [keyOf('site'), publicKey], 'the key of this host', 'gate lone'],
    ['a peer that stands twice', [keyOf('site'), keyOf('lone')], 'two [Peer]s with one key', 'gate lone'],
    ['a prefix of two peers', ['192.168.50.7/24', '10.77.0.10'], 'are those of the last', 'gate site lone'],
  ])('is %s, which costs no more than itself', (_, [before = '', after = ''], remark, others) => {
    const { map, text: said } = decode({ config: text.replace(before, after) });
    expect(map.peers.slice(0, -1).map(({ publicKey: key }) => key)).toEqual(others.split(' ').map(keyOf));
    expect(said?.remarks).toEqual([expect.stringContaining(remark)]);
    const given = map.peers.flatMap((each) => each.given?.allowedIps ?? []);
    expect(given).not.toContain('10.77.0.5/32');
    expect(new Set(given).size).toBe(given.length);
  });

  test.each([
    ['endpoint', 'PersistentKeepalive = 25', 'Endpoint = 203.0.113.7:7', 'line 12 repeats Endpoint; the last'],
    ['preshared key', 'PersistentKeepalive = 25', `PresharedKey = ${keyOf(9)}`, 'line 12 repeats PresharedKey'],
    ['MTU', 'PrivateKey = <YOUR_PRIVATE_KEY>', 'MTU = 1280', null],
    ['port', 'MTU = 1380', 'ListenPort = 1\r\nListenPort = 2', null],
    ['[Interface]', '[Peer]\r\n', '[Interface]\r\nDNS = 10.77.0.1\r\n[Peer]\r\n', 'line 14 begins another [Interface]'],
  ])('is a repeated %s, where the last one counts', (_, before, after, remark) => {
    const { map, text: said } = decode({ config: text.replace(before, after) });
    expect(map.peers.map(({ publicKey: key }) => key)).toEqual([...['gate', 'site', 'lone'].map(keyOf), publicKey]);
    expect(said?.remarks ?? []).toEqual(remark === null ? [] : [expect.stringContaining(remark)]);
  });

  test('is a second address, of which the first is used', () => {
    const { peer, text: said } = decode({ config: text.replace('10.77.0.5/24', '10.77.0.5/24, 10.77.0.6/24') });
    expect([peer.address, said?.remarks]).toEqual(['10.77.0.5', ['the first of the addresses is used alone']]);
  });

  test('may begin with a byte order mark', () => {
    expect(decode({ config: `\ufeff${text}` })).toEqual(decode({ config: text }));
  });

  test('is a gateway to everything, which is named by the host of its endpoint', () => {
    const config = text.replace('10.77.0.5/24', '10.77.0.5/32').replace('10.77.0.0/24', '0.0.0.0/0');
    expect(decode({ config }).map.peers[0]?.name).toBe('gate.example.net');
  });
});

describe('a text that cannot be used is refused by line and key, without a value', () => {
  const canary = 'canary-value';
  test.each([
    ['a line that is none', `${text}${canary}`, 'is neither a section, nor "Key = value"'],
    ['a NUL', text.replace('1380', '1380\u0000'), 'line 5 is neither'],
    ['a space that is none for wg-quick', text.replace('MTU', '\u00a0MTU'), 'line 5 is neither'],
    ['such a space before a heading', text.replace('[Interface]', '\u00a0[Interface]'), 'line 2 is neither'],
    ['such a space alone', `${text}\u2003# x`, 'is neither a section'],
    ['an address with two lengths', text.replace('10.77.0.5/24', '10.77.0.5/24/7'), 'Address of line 4 is not an IPv4'],
    ['no [Interface]', text.replace('[Interface]', '[Peer]'), 'the text has no [Interface]'],
    ['blanks in a key of wg-quick', text.replace('Address', 'Ad dress'), 'line 4 has blanks in Address'],
    [
      'blanks in [Interface]',
      text.replace('[Interface]', '[ Interface ]'),
      'line 4 has Address below an [Interface] with',
    ],
    ['nothing', '', 'the text has no [Interface]'],
    ['no address', text.replace('Address=10.77.0.5/24', ''), 'has no Address in its [Interface]'],
    ['no IPv4 address', text.replace('10.77.0.5/24', 'fd00::5/64'), 'Address of line 4 is not an IPv4 address'],
    ['too many routes', text.replace('172.20.0.0/16', many(300)), 'has more than 256 routes'],
    ['too many ranges', text.replace('172.20.0.0/16', many(17_000)), 'has more than 16640 AllowedIPs'],
    ['another private key', text.replace('<YOUR_PRIVATE_KEY>', keyPair(2).privateKey.reveal()), "is not this host's"],
  ])('%s', (_, config, problem) => {
    const message = refusalOf({ config });
    expect(message).toContain(problem);
    expect(message).toMatch(/; have the operator of the service correct the text$/);
    expect(message).not.toContain('canary-value');
    for (const secret of ['psk', 'gate', 'site']) expect(message).not.toContain(keyOf(secret));
  });

  test.each([
    [
      'another address than the reply',
      { config: text, peer: { address: '10.77.0.6' } },
      'peer.address is not the Address',
    ],
    [
      'an address outside the given range',
      { config: text, network: { private_cidr: '10.78.0.0/24' } },
      'is outside the range',
    ],
    ['a text that is none', { config: 7 }, 'config is not a string'],
  ])('%s', (_, body, problem) => {
    expect(refusalOf(body)).toContain(problem);
  });

  test('of a service that sends no text, the address may be wrong', () => {
    expect(refusalOf({ config: 7 })).toContain('is not a string; check that --api names the control plane');
    expect(refusalOf({ network: {} })).toContain('check that --api names the control plane');
  });

  test('a line is looked at once, however long it is', () => {
    const spaces = text.replace('MTU = 1380', `MTU = ${' '.repeat(1_000_000)}\u0001`);
    expect(bounded(() => refusalOf({ config: spaces }))).toContain('line 5 is neither a section, nor "Key = value"');
    const comment = text.replace('MTU = 1380', `${'#'.repeat(1_000_000)}\rx`);
    expect(bounded(() => decode({ config: comment })).map).toEqual(decode({ config: text }).map);
  });

  test('no text makes anything but an enrolment or a BadReply', () => {
    const line = fc.constantFrom(
      ...text.split('\r\n'),
      '[Peer]',
      'AllowedIPs = ::/0',
      'Address = 0.0.0.0/0',
      '=',
      'Endpoint =',
    );
    const nearly = fc
      .array(line, { maxLength: 25 })
      .map((lines) => ['[Interface]', 'Address = 10.77.0.5/24', ...lines].join('\n'));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), nearly), (config) => {
        try {
          decode({ config });
        } catch (error) {
          if (!(error instanceof BadReply)) throw error;
        }
      }),
      { numRuns: 500 },
    );
  });
});
