import { afterAll, beforeAll, expect, test } from 'vitest';
import { InvalidValue } from '../../src/core/errors/index.ts';
import { formatInterfaceAddress } from '../../src/core/net/cidr.ts';
import { formatEndpoint, isLiteral } from '../../src/core/net/endpoint.ts';
import { parseConfig, type TunnelConfig } from '../../src/core/wg-quick/parse.ts';
import { type ProvidedConfig, parseProvidedConfig } from '../../src/core/wg-quick/provided-config.ts';
import { servicePorts } from '../../src/core/wg-quick/provided-endpoint.ts';
import { renderConfig } from '../../src/core/wg-quick/render.ts';
import { meaningOf, meaningOfPeer, meaningSent } from './config-meaning.ts';
import { configTexts } from './config-texts.ts';
import { fuzz } from './fuzz.ts';
import { hostileConfigs } from './hostile-maps.ts';
import { bounded, unlessRefused } from './time-bound.ts';
import { tunnelConfigs } from './values.ts';
import { WgOracle } from './wg-oracle.ts';
import { type Understood, WgQuickOracle } from './wg-quick-oracle.ts';

let wgQuick: WgQuickOracle;
let wg: WgOracle;

beforeAll(async () => {
  wgQuick = await WgQuickOracle.start();
  wg = await WgOracle.start();
});
afterAll(async () => {
  await wgQuick?.stop();
  await wg?.stop();
});

fuzz(
  'wg-quick and wg read the file of any configuration as it was meant, and so does the program',
  120,
  [tunnelConfigs],
  async (config) => {
    const text = renderConfig(config);
    await expectMeant(text, config);
    expect(renderConfig(parseConfig(text))).toBe(text);
  },
);

fuzz('nothing that a control plane says gets anything else into the file', 250, [hostileConfigs], async (config) => {
  if (config !== null) await expectMeant(renderConfig(config), config);
});

fuzz('a file that we accept means the same to wg-quick and wg', 300, [configTexts], async (text) => {
  const config = bounded(() => unlessRefused([InvalidValue], () => parseConfig(text)));
  if (config !== null) await expectMeant(text, config);
});

fuzz(
  "another tool's file that the program reads in full means the same to wg-quick and wg",
  300,
  [configTexts],
  async (text) => {
    const given = bounded(() => unlessRefused([InvalidValue], () => parseProvidedConfig(text)));
    if (given !== null && isWhole(text, given)) await expectGiven(text, given);
  },
);

/** Such a text, with one line of the interface or the peer in other words. */
const written = (change: (text: string) => string) =>
  change(`[Interface]
PrivateKey = ${Buffer.alloc(32, 5).toString('base64')}
Address = 10.66.12.34/32
MTU = 1380
[Peer]
PublicKey = ${Buffer.alloc(32, 7).toString('base64')}
AllowedIPs = 10.64.0.1/32, 10.66.0.0/16
Endpoint = 203.0.113.11:51820
`);
const add = (...lines: string[]) => written((text) => `${text}${lines.join('\n')}\n`);
const replace = (from: string | RegExp, to: string) => written((text) => text.replace(from, to));

test.each([
  ['a repeated endpoint', add('Endpoint = 203.0.113.12:7'), '203.0.113.12:7'],
  ['a repeated keepalive', add('PersistentKeepalive = 25', 'PersistentKeepalive = 015'), '203.0.113.11:51820'],
  ['a repeated key', add(`PublicKey = ${Buffer.alloc(32, 9).toString('base64')}`), '203.0.113.11:51820'],
  ['a repeated MTU', replace('MTU = 1380', 'MTU = 1380\nMTU = 1280'), '203.0.113.11:51820'],
  ['a repeated port', replace('MTU = 1380', 'ListenPort = 1\nListenPort = 2'), '203.0.113.11:51820'],
  ['a second [Interface]', add('[Interface]', 'MTU = 1300', 'ListenPort = 7'), '203.0.113.11:51820'],
  ['an [Interface] in two parts', replace('Address', '[interface]\nAddress'), '203.0.113.11:51820'],
  ['blanks in [Peer]', replace('[Peer]', ' [ Pe\ter ] '), '203.0.113.11:51820'],
  ['blanks in keys', replace(/Key|IPs|point/g, ' $&'), '203.0.113.11:51820'],
  ['blanks in [Interface] with keys of wg alone', add('[ Interface ]', 'ListenPort = 7'), '203.0.113.11:51820'],
  ['a prefix with zeros in front', replace('/16', '/016'), '203.0.113.11:51820'],
  ['a port with zeros in front', replace(':51820', ':00123'), '203.0.113.11:123'],
  ['an address without brackets', replace('203.0.113.11', '2001:db8::1'), '[2001:db8::1]:51820'],
  ['IPv4 in brackets', replace('203.0.113.11', '[203.0.113.11]'), '203.0.113.11:51820'],
])('%s means the same to the program as to wg-quick and wg', async (_, text, endpoint) => {
  const given = parseProvidedConfig(text);
  expect(given.skipped).toEqual([]);
  const [{ endpoint: read = null } = {}] = given.peers;
  expect(read && formatEndpoint(read)).toBe(endpoint);
  expect(isWhole(text, given)).toBe(true);
  await expectGiven(text, given);
});

test.each(servicePorts)('the port %s is %i, as getaddrinfo reads it for wg', async (name, port) => {
  const text = replace(':51820', `:${name}`);
  expect(parseProvidedConfig(text).peers[0]?.endpoint).toEqual({ host: '203.0.113.11', port });
  await expectGiven(text, parseProvidedConfig(text));
});

test.each([
  ['blanks in [Interface]', replace('[Interface]', '[ Interface ]')],
  ['blanks in a key of wg-quick', replace('Address', 'Ad dress')],
  ['words behind a heading', replace('[Peer]', '[Peer] home')],
  ['a wrong endpoint before a right one', replace('Endpoint', 'Endpoint = 203.0.113.11\nEndpoint')],
  ['a wrong keepalive before a right one', add('PersistentKeepalive = x', 'PersistentKeepalive = 25')],
  ['no endpoint', replace(/Endpoint.*/, 'Endpoint =')],
])('%s is refused by wg, and here it is refused or its peer is skipped', async (_, text) => {
  const { wgConfig } = await wgQuick.understand(text);
  expect(await wg.understand(wgConfig)).toBeNull();
  const given = unlessRefused([InvalidValue], () => parseProvidedConfig(text));
  expect(given?.peers ?? []).toEqual([]);
});

/** Nothing of the text was left out, or kept as data alone. */
function isWhole(text: string, { remarks, skipped, dns }: ProvidedConfig): boolean {
  const lost = remarks.filter((remark) => !/repeats .*; the last one counts|adds to the first one/.test(remark));
  return lost.length + skipped.length + dns.length === 0 && !/table|^\ufeff/i.test(text);
}

async function expectMeant(text: string, config: TunnelConfig): Promise<void> {
  const understood = await wgQuick.understand(text);
  expectNothingElse(understood, [formatInterfaceAddress(config.address)], String(config.mtu));
  const parsed = await wg.understand(understood.wgConfig);
  if (parsed === null) throw new Error('wg refuses it');
  expect(meaningSent(parsed)).toEqual(meaningOf(config));
}

/** Fields of the host itself are ignored, and may be anything; and `wg` would resolve a name: then endpoints are not compared. */
async function expectGiven(text: string, { address, peers }: ProvidedConfig): Promise<void> {
  const understood = await wgQuick.understand(text);
  expectNothingElse(understood, understood.addresses, understood.mtu);
  const expected = address && formatInterfaceAddress(address);
  const [first = null, ...rest] = understood.addresses;
  expect(rest).toEqual([]);
  expect(first?.includes('/') === false ? `${first}/32` : first).toBe(expected);
  const isNamed = peers.some(({ endpoint }) => endpoint !== null && !isLiteral(endpoint));
  const ignored = ['ListenPort', 'FwMark', 'PrivateKey', ...(isNamed ? ['Endpoint'] : [])];
  const used = ignored
    .reduce((all, key) => all.replace(lineOf(key), ''), understood.wgConfig)
    .replace(lineOf('AllowedIPs'), withoutHoles);
  const wgParsed = await wg.understand(used);
  if (wgParsed === null) throw new Error('wg refuses it');
  const meant = peers.map(({ endpoint, ...peer }) =>
    meaningOfPeer({ ...peer, endpoint: endpoint !== null && !isNamed && isLiteral(endpoint) ? endpoint : null }),
  );
  const unique = meaningSent(wgParsed).peers.map((peer) => ({ ...peer, allowedIps: [...new Set(peer.allowedIps)] }));
  expect(unique).toEqual(meant);
}

/** The lines of a key, which wg finds with any blanks in it. */
function lineOf(key: string): RegExp {
  const blanks = '[^\\S\\n]*';
  return new RegExp(`^${blanks}${[...key].join(blanks)}${blanks}=[^\\n]*`, 'gim');
}

/** The program reads a list without an entry, or with nothing between its commas; `wg` of 2021 refuses both. */
function withoutHoles(line: string): string {
  const entries = line
    .slice(line.indexOf('=') + 1)
    .replace(/#.*/s, '')
    .split(',')
    .filter((entry) => entry.trim() !== '');
  return entries.length === 0 ? '' : `AllowedIPs = ${entries.join(',')}`;
}

/** Fails where wg-quick takes anything else out of it. */
function expectNothingElse(understood: Understood, addresses: readonly string[], mtu: string): void {
  const { wgConfig: _, ...own } = understood;
  expect(own).toEqual({ died: false, addresses, mtu, dns: [], table: '', hooks: [], saveConfig: '0' });
}
