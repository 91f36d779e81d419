import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { makeKeyPair } from '../../../src/core/crypto/keys.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import type { PeerLabels } from '../../../src/core/names/hosts-label.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import type { Pin } from '../../../src/core/pins/match-pins.ts';
import { formatState, parseState } from '../../../src/store/state/state-file.ts';
import { state } from '../samples.ts';

const [first] = state.membership?.map.peers ?? [];
const peer = {
  ...(first as Peer),
  ...{ withdrawn: [], unlisted: true, type: 'connector', servingSince: 1, secretTag: 'tag', routes: null, priority: 1 },
  ...{ proof: { serial: 1, key: 'key' }, identity: 'id', expiresAt: 2, via: { connector: 1 } },
  given: { presharedKey: new Secret('psk'), keepalive: 25, allowedIps: [] },
} as unknown as Peer;
const pin = { serial: 0, publicKey: peer.publicKey, peer: peer.id, identity: null, address: peer.address } as const;

it('has the fields of each row in the order of their names, and leaves none out', () => {
  const membership = state.membership && { ...state.membership, map: { ...state.membership.map, peers: [peer] } };
  const pins: Pin[] = [{ ...pin, claimed: { ...pin } }];
  const labels: PeerLabels[] = [{ peer: peer.id, labels: ['one'] }];
  const rows = formatState({ ...state, membership, pins, labels })
    .split('\n')
    .filter((line) => line.startsWith('{"'));
  const sources: object[] = [peer, ...pins, ...labels];
  expect(
    rows
      .map((row) => Object.keys(JSON.parse(row)).sort())
      .map(String)
      .sort(),
  ).toEqual(sources.map((source) => String(Object.keys(source).sort())).sort());
  for (const row of rows) expect(row).toBe(JSON.stringify(JSON.parse(row), byName));
});

function byName(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

it('is read as it was written, whatever a name has in it', () => {
  for (const name of ['$&', "a$'b", 'cash$$', '$`', '$1', '$<rows>', '\\', '"peers": []', '],', '\u2028']) {
    const peers = [{ ...(first as Peer), name }];
    const membership = state.membership && { ...state.membership, map: { ...state.membership.map, name, peers } };
    const labels: PeerLabels[] = [{ peer: peer.id, labels: [name] }];
    const read = parseState(formatState({ ...state, membership, labels }));
    expect([name, read.membership?.map, read.labels]).toEqual([name, membership?.map, labels]);
  }
});

it('has the public key, which is derived only where the file is older than that, or the map does not list it', () => {
  const text = formatState(state);
  const other = makeKeyPair(randomBytes(32)).publicKey;
  expect(text).toContain(`"publicKey": "${state.keyPair.publicKey}"`);
  const withoutIt = text.replace(/^ {2}"publicKey": .*\n/m, '');
  expect(withoutIt).not.toBe(text);
  expect(parseState(withoutIt).keyPair.publicKey).toBe(state.keyPair.publicKey);
  const damaged = text.replace(/^( {2}"publicKey": ").*"/m, `$1${other}"`);
  expect(() => parseState(damaged)).toThrow('the public key is not that of the private key');
  const listed = damaged.replace(/("publicKey": ?").*?(")(?=[^\n]*"type")/, `$1${other}$2`);
  expect(listed).not.toBe(damaged);
  expect(parseState(listed).keyPair.publicKey).toBe(other);
});

it.each(['privateKey', 'publicKey'])('is refused without its words where the %s is none', (field) => {
  const text = formatState(state).replace(new RegExp(`("${field}": ").*"`), '$1confidential"');
  expect(() => parseState(text)).toThrow(/^a field is not/);
  expect(() => parseState(text)).not.toThrow(/confidential/);
});

it.each([
  ['a proxy with credentials', parseProxy('http://user:p%40ss%2F@proxy.example:3128', 'HTTPS_PROXY')],
  ['an IPv6 proxy without', parseProxy('https://[2001:db8::1]', '--proxy')],
  ['none in any case', 'none' as const],
  ['none', undefined],
])('has %s of the control plane', (_, proxy) => {
  const service = { ...state.service, ...(proxy !== undefined && { proxy }) };
  const text = formatState({ ...state, service });
  const read = parseState(text).service;
  expect(read).toEqual(service);
  if (typeof proxy === 'object' && typeof read.proxy === 'object') {
    expect(read.proxy.credentials?.reveal()).toBe(proxy.credentials?.reveal());
  }
  // An earlier version reads these fields alone.
  expect(JSON.parse(text).service).toMatchObject({ url: service.url, insecureHttp: service.insecureHttp });
});

it('is refused without its words where the proxy is none', () => {
  const proxy = parseProxy('http://proxy.example:3128', '--proxy');
  const text = formatState({ ...state, service: { ...state.service, proxy } });
  const damaged = text.replace('http://proxy.example', 'socks5://user:confidential@proxy.example');
  expect(damaged).not.toBe(text);
  expect(() => parseState(damaged)).toThrow(/^(?!.*confidential)a field /);
});

it('of a version with fewer fields of peers has the map without its revision, so that the map is read again', () => {
  const text = formatState(state);
  const older = text.replace(/^ *"fields": 8,\n/m, '').replace(',"via":{"connector":1}', '');
  expect(older).not.toContain('via');
  expect(parseState(text).membership?.map).toEqual(state.membership?.map);
  const { peers, ...map } = parseState(older).membership?.map ?? {};
  expect(map).toEqual({ ...state.membership?.map, peers: undefined, revision: null });
  expect(peers?.[2]).not.toHaveProperty('via');
});

it('has the CAs of the control plane, and reads a file without them', () => {
  const authorities = ['-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n'];
  const service = { ...state.service, authorities };
  expect(parseState(formatState({ ...state, service })).service).toEqual(service);
  expect(parseState(formatState(state)).service).not.toHaveProperty('authorities');
});
