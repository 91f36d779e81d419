import { beforeEach, describe, expect, test } from 'vitest';
import { decodeMap } from '../../src/api/decode/map.ts';
import { connectPeerService } from '../../src/api/peer-service.ts';
import type { MapReading, PeerService } from '../../src/api/service.ts';
import { makeIdentity } from '../../src/core/crypto/identity.ts';
import { parsePublicKey } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { CannotReport, CannotWithdraw } from '../../src/core/errors/index.ts';
import { type Feature, features } from '../../src/core/map/features.ts';
import { parseAddress, parsePrefix } from '../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../src/core/net/endpoint.ts';
import { enrollmentBody, enrollmentRequest, keyOf, networkBody, peerBody, source } from './samples.ts';
import { type Asked, empty, json, serve } from './server.ts';

const token = new Secret('token-sample');
const known = decodeMap(networkBody(), source, { network: 7, etag: '"12"' });
const proof = { serial: 5, signature: `${'A'.repeat(86)}==` };
const tag = '00112233445566ff';
const endpoint = parseEndpoint('203.0.113.22:51820');
const answers = {
  enroll: json(201, { data: enrollmentBody() }),
  map: json(200, { data: networkBody({ etag: '"14-body"', removed: [8] }) }, { etag: '"14"' }),
  change: json(200, { data: peerBody(3, { withdrawn: ['10.77.0.0/16'], public_key: keyOf(9), name: 'edge' }) }),
  removal: json(200, { data: null }),
  report: json(200, { data: { reachable_by: 1, witnesses: 2 } }),
  paths: empty,
};
const operations = {
  enroll: ['POST', /\/enroll$/],
  map: ['GET', /\/networks\/7$/],
  change: ['PATCH', /\/peers\/3$/],
  removal: ['DELETE', /\/peers\/3$/],
  report: ['POST', /\/report$/],
  paths: ['POST', /\/peers\/self\/paths$/],
} as const;

let address: { url: string; insecureHttp: boolean };
let asked: Asked[];
beforeEach(async () => {
  ({ address, asked } = await serve((response, request) => answers[operationOf(request)](response, request)));
});

function operationOf({ method, path }: Asked): keyof typeof operations {
  const found = Object.entries(operations).find(([, [verb, form]]) => method === verb && form.test(path));
  return (found?.[0] ?? expect.unreachable()) as keyof typeof operations;
}

/** What every request has. */
const usual = [
  ...['accept', 'accept-encoding', 'user-agent', 'host', 'connection', 'authorization'],
  ...['content-type', 'content-length'],
];

const contractFields = ['enrollment_token', 'name', 'peer_type', 'public_key', 'endpoint'];
const isOfContract = (operation: string, field: string) => operation === 'enroll' && contractFields.includes(field);

/** What a host does with a service. */
const calls = {
  enroll: (service) => {
    const identity = makeIdentity(new Uint8Array(32).fill(7)).key;
    const currentPeers = [{ publicKey: parsePublicKey(keyOf(5)), address: parseAddress('10.77.0.5') }];
    const proven = { identity, identityProof: 'P'.repeat(86), keyProof: proof, secretTag: tag };
    return service.enroll(enrollmentRequest({ ...proven, followsRelay: true, currentNetworks: [3], currentPeers }));
  },
  map: (service) => service.readMap(7, token, known, { seconds: 20 }),
  withdraw: (service) => service.withdraw(7, 3, token, [parsePrefix('10.77.0.0/16')]).catch(ignore(CannotWithdraw)),
  announceMasquerading: (service) => service.announceMasquerading(7, 3, token, true),
  announceSecret: (service) => service.announceSecret(7, 3, token, tag),
  changeKey: (service) => service.changeKey(7, 3, token, parsePublicKey(keyOf(9)), proof),
  rename: (service) => service.describePeer(7, 3, token, { name: 'edge' }).catch(ignore(CannotReport)),
  move: (service) => service.describePeer(7, 3, token, { endpoint }).catch(ignore(CannotReport)),
  remove: (service) => service.removePeer(7, 3, token),
  report: (service) => service.report(7, 3, token, { map: [], refused: [] }),
  paths: (service) => service.sendPathSignals(7, token, { wanted: [4] }),
} satisfies Record<string, (service: PeerService) => Promise<unknown>>;
type CallName = keyof typeof calls;
const everything = Object.keys(calls) as CallName[];

/** Makes these calls, and lists what of them the service sees, and what is read of its map. */
async function seenOf(described: readonly Feature[], names: readonly CallName[]): Promise<string[]> {
  asked.length = 0;
  const service = connectPeerService(address, described, { instance: '0f1e2d3c4b5a6978', enforcesRules: true });
  const read: string[] = [];
  for (const name of names) {
    const { map, removed } = ((await calls[name](service)) ?? {}) as Partial<MapReading>;
    if (map?.revision === '"14-body"') read.push('the ETag of the body');
    if (removed !== undefined) read.push('what is removed');
  }
  const sent = asked.flatMap((request) => {
    const operation = operationOf(request);
    const headers = Object.keys(request.headers).filter((name) => !usual.includes(name));
    const fields =
      request.body === '' ? [] : Object.keys(JSON.parse(request.body)).filter((name) => !isOfContract(operation, name));
    return [operation, ...[...headers, ...fields].map((name) => `${operation}: ${name}`)];
  });
  return [...new Set([...sent, ...read])].toSorted();
}

const ignore = (kind: typeof CannotReport | typeof CannotWithdraw) => (error: unknown) => {
  if (!(error instanceof kind)) throw error;
};

/** In which call a host uses an extension, what it does with it alone, and what it does not do without it. */
interface Use {
  readonly call: CallName;
  readonly alone: readonly string[];
  readonly missing: readonly string[];
}
const use = (call: CallName, alone: readonly string[], missing = alone): Use => ({ call, alone, missing });
const change = (call: CallName, field: string) => use(call, ['change', `change: ${field}`]);

const uses: Readonly<Record<Feature, Use>> = {
  'enroll-idempotently': use('enroll', ['enroll: idempotency-key']),
  'enroll-identity': use('enroll', ['enroll: peer-identity-key']),
  'enroll-identity-proof': use('enroll', ['enroll: peer-identity-proof', 'enroll: peer-key-proof']),
  'enroll-secret-tag': use('enroll', ['enroll: network-secret-tag']),
  'enroll-current-networks': use('enroll', ['enroll: current-networks']),
  'enroll-current-peers': use('enroll', ['enroll: current-peers']),
  'enroll-follows-relay': use('enroll', ['enroll: follows_relay']),
  'enroll-enforces-rules': use('enroll', ['enroll: enforces_rules']),
  'map-revision': use(
    'map',
    ['map: if-none-match'],
    [
      'map: a-im',
      'map: if-none-match',
      'map: peer-messages',
      'map: peer-messages-receipt',
      'map: prefer',
      'what is removed',
    ],
  ),
  'map-wait': use('map', [], ['map: prefer']),
  'map-changes': use('map', [], ['map: a-im', 'map: peer-messages', 'map: peer-messages-receipt']),
  'map-removed': use('map', [], ['what is removed']),
  'map-etag': use('map', ['the ETag of the body']),
  'map-instance': use('map', ['map: peer-instance']),
  'map-messages': use('map', [], ['map: peer-messages', 'map: peer-messages-receipt']),
  'map-deletion': use('map', ['map: network-deletion']),
  'peer-name': change('rename', 'name'),
  'peer-endpoint': change('move', 'endpoint'),
  'peer-key': use('changeKey', ['change', 'change: public_key'], ['change', 'change: key_proof', 'change: public_key']),
  'peer-key-proof': use('changeKey', [], ['change: key_proof']),
  'peer-withdrawn': change('withdraw', 'withdrawn'),
  'peer-masquerades': change('announceMasquerading', 'masquerades'),
  'peer-secret-tag': change('announceSecret', 'network_secret_tag'),
  'peer-removal': use('remove', ['removal']),
  'peer-report': use(
    'report',
    ['report'],
    ['report', 'report: enforces_rules', 'report: follows_relay', 'report: map', 'report: refused'],
  ),
  'peer-follows-relay': use('report', [], ['report: follows_relay']),
  'peer-enforces-rules': use('report', [], ['report: enforces_rules']),
  'peer-map': use('report', [], ['report: map']),
  'peer-refused': use('report', [], ['report: refused']),
  'peer-paths': use('paths', ['paths', 'paths: wanted']),
};
const all = [...new Set(['enroll', 'map', ...Object.values(uses).flatMap(({ missing }) => missing)])].toSorted();

describe('of a service that describes', () => {
  test('nothing, a host uses the contract alone', async () => {
    expect(await seenOf([], everything)).toEqual(['enroll', 'map']);
  });

  test('everything, a host uses all that there is', async () => {
    expect(await seenOf(features, everything)).toEqual(all);
  });

  test.each(features)('%s alone, a host uses this and no more', async (feature) => {
    const { call, alone } = uses[feature];
    const contract = ['enroll', 'map'].filter((name) => name === call);
    expect(await seenOf([feature], [call])).toEqual([...contract, ...alone].toSorted());
  });

  test.each(features)('all but %s, a host leaves out what depends on it', async (feature) => {
    const { call, missing } = uses[feature];
    const ofCall = new Set(Object.values(uses).flatMap((each) => (each.call === call ? each.missing : [])));
    const contract = ['enroll', 'map'].filter((name) => name === call);
    const left = [...contract, ...ofCall].filter((each) => !missing.includes(each)).toSorted();
    expect(
      await seenOf(
        features.filter((each) => each !== feature),
        [call],
      ),
    ).toEqual(left);
  });
});
