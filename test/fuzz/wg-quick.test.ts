import { afterAll, beforeAll, expect } from 'vitest';
import { InvalidValue } from '../../src/core/errors/index.ts';
import { formatInterfaceAddress } from '../../src/core/net/interface-address.ts';
import { parseConfig } from '../../src/core/wg-quick/parse.ts';
import { type ProvidedConfig, parseProvidedConfig } from '../../src/core/wg-quick/provided-config.ts';
import { renderConfig } from '../../src/core/wg-quick/render.ts';
import type { TunnelConfig } from '../../src/core/wg-quick/tunnel-config.ts';
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

fuzz('nothing that a control plane says gets anything else into the file', 500, [hostileConfigs], async (config) => {
  if (config !== null) await expectMeant(renderConfig(config), config);
});

fuzz('a file that we accept means the same to wg-quick and wg', 600, [configTexts], async (text) => {
  const config = bounded(() => unlessRefused([InvalidValue], () => parseConfig(text)));
  if (config !== null) await expectMeant(text, config);
});

fuzz(
  "another tool's file that the program reads in full means the same to wg-quick and wg",
  600,
  [configTexts],
  async (text) => {
    const given = bounded(() => unlessRefused([InvalidValue], () => parseProvidedConfig(text)));
    if (given !== null && isWhole(text, given)) await expectGiven(text, given);
  },
);

/** Nothing of the text was left out, or kept as data alone. */
function isWhole(text: string, { remarks, skipped, dns }: ProvidedConfig): boolean {
  return remarks.length + skipped.length + dns.length === 0 && !/table/i.test(text);
}

async function expectMeant(text: string, config: TunnelConfig): Promise<void> {
  const understood = await wgQuick.understand(text);
  expectNothingElse(understood, [formatInterfaceAddress(config.address)], String(config.mtu));
  const parsed = await wg.understand(understood.wgConfig);
  if (parsed === null) throw new Error('wg refuses it');
  expect(meaningSent(parsed)).toEqual(meaningOf(config));
}

/** Fields of the host itself are ignored, and may be anything; and `wg` would resolve a name. */
async function expectGiven(text: string, { address, peers }: ProvidedConfig): Promise<void> {
  const understood = await wgQuick.understand(text);
  expectNothingElse(understood, understood.addresses, understood.mtu);
  const expected = address && formatInterfaceAddress(address);
  const [first = null, ...rest] = understood.addresses;
  expect(rest).toEqual([]);
  expect(first?.includes('/') === false ? `${first}/32` : first).toBe(expected);
  const used = understood.wgConfig
    .replace(/^[^\S\n]*(ListenPort|FwMark|PrivateKey|Endpoint)[^\S\n]*=[^\n]*/gim, '')
    .replace(/^[^\S\n]*AllowedIPs[^\S\n]*=[^\n]*/gim, withoutHoles);
  const wgParsed = await wg.understand(used);
  if (wgParsed === null) throw new Error('wg refuses it');
  const withoutEndpoints = peers.map((peer) => meaningOfPeer({ ...peer, endpoint: null }));
  const unique = meaningSent(wgParsed).peers.map((peer) => ({ ...peer, allowedIps: [...new Set(peer.allowedIps)] }));
  expect(unique).toEqual(withoutEndpoints);
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
