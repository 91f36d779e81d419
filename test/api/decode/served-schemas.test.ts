import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  decodeChangedPeer,
  decodeKeys,
  decodeListedPeers,
  decodeNetworks,
  decodeNewKey,
  decodeProfile,
  decodeSession,
  decodeWholeNetwork,
} from '../../../src/api/decode/admin.ts';
import { decodeEnrollment } from '../../../src/api/decode/enrollment.ts';
import * as extensions from '../../../src/api/decode/extensions.ts';
import { decodeMap } from '../../../src/api/decode/map.ts';
import { parsePublicKey } from '../../../src/core/crypto/keys.ts';
import { BadReply } from '../../../src/core/errors/index.ts';
import { addressAt, lengthOf, type Prefix, rangeOf } from '../../../src/core/net/cidr.ts';
import { type Description, readDescription, type Schema } from '../../control-plane/http/served-description.ts';
import { keyPair } from '../../core/samples.ts';
import { source } from '../samples.ts';
import { readAt, replaceAt, requiredWays, resolve, valuesOf, type Way } from './schema-values.ts';

// biome-ignore lint/suspicious/noExplicitAny: values made from a schema, of which nothing else is known.
type Value = any;

/** How the client reads what a reply brings in `data`. */
interface Reading {
  /** The component, or a list of them. */
  readonly of: string;
  readonly list?: true;
  /** Makes a value obey what a JSON schema cannot say. */
  readonly mend?: (value: Value) => Value;
  readonly decode: (body: unknown, value: Value) => unknown;
  /** What the client can do without, because another service may leave it out. */
  readonly mayLack: readonly string[];
  /** What it does not look at. */
  readonly ignores: readonly string[];
}

const peerGaps = ['peers.0.id', 'peers.0.name', 'peers.0.peer_type', 'peers.0.endpoint', 'peers.0.created_at'];
const networkGaps = ['description', 'routes', 'vpn_type', 'revision'];
const profile = ['id', 'email', 'role', 'organization', 'organization.id', 'organization.name'];
/** All but the peers and their ids. */
const healthGaps = [
  ...['state', 'reachable_by', 'witnesses', 'last_seen', 'version', 'paths', 'paths.0.peer', 'paths.0.path'],
  ...['name', 'why', 'platform', 'source_address', 'reported_at', 'drift', 'pin_mismatches', 'problem'],
  ...['routes', 'routes.0.route', 'routes.0.connector'],
]
  .map((name) => `peers.0.${name}`)
  .concat(['routes', ...['route', 'state', 'connector', 'standby', 'why'].map((name) => `routes.0.${name}`)]);
const keyGaps = ['max_uses', 'uses', 'expires_at'];
const ask = { name: 'k', max_uses: 1, expires_in_hours: 1 };

const readings: Readonly<Record<string, Reading>> = {
  'the map of a host': {
    of: 'NetworkReading',
    mend: mendNetwork,
    decode: (body, { id }) => refuseSkipped(decodeMap(body, source, { network: id, etag: null }).skipped),
    mayLack: [...networkGaps, 'etag', ...peerGaps],
    ignores: ['description', 'revision', 'etag', 'peers.0.created_at'],
  },
  'a network, for an administrator': {
    of: 'Network',
    mend: mendNetwork,
    decode: (body) => refuseSkipped(decodeWholeNetwork(body, source).skipped_peers),
    mayLack: [...networkGaps, 'etag', 'peers', ...peerGaps],
    ignores: ['etag'],
  },
  'the networks': {
    of: 'NetworkSummary',
    list: true,
    decode: (body) => decodeNetworks(body, source),
    mayLack: networkGaps.map((name) => `0.${name}`),
    ignores: [],
  },
  'an enrolment': {
    of: 'Enrollment',
    mend: mendEnrollment,
    decode: (body, value) => {
      const { public_key, name, peer_type: type } = value.network.peers[0];
      return decodeEnrollment(body, source, { publicKey: parsePublicKey(public_key), name, type, endpoint: null });
    },
    mayLack: [
      ...['access_token', 'network_etag', 'network.id', 'network.name', 'network.private_cidr'],
      ...['peer.id', 'peer.name', 'peer.peer_type', 'peer.public_key', 'peer.endpoint', 'peer.created_at'],
      ...[...networkGaps, 'etag', ...peerGaps].map((name) => `network.${name}`),
    ],
    ignores: [
      'network_etag',
      'peer.peer_type',
      'peer.endpoint',
      'peer.created_at',
      'network.description',
      'network.etag',
      'network.peers.0.created_at',
    ],
  },
  'the chain of the audit': {
    of: 'AuditLink',
    list: true,
    decode: (body) => extensions.decodeAuditChain(body, source),
    mayLack: ['0.entry'],
    ignores: [],
  },
  'a changed password': {
    of: 'PasswordChange',
    decode: (body) => extensions.decodePasswordChange(body, source),
    mayLack: [
      ...['sessions_ended', 'tokens_revoked', 'tokens_revoked.0.expires_at', 'tokens_revoked.0.last_used_at'],
      ...['users_made', 'keys_made', ...keyGaps.map((name) => `keys_made.0.${name}`)],
    ],
    ignores: keyGaps.map((name) => `keys_made.0.${name}`),
  },
  'a user that was changed': {
    of: 'ChangedUser',
    decode: (body) => extensions.decodeChangedUser(body, source),
    mayLack: [],
    ignores: [],
  },
  'the second factors that were removed': {
    of: 'FactorsRemoved',
    decode: (body) => extensions.decodeFactorsRemoved(body, source),
    mayLack: ['factors_removed'],
    ignores: [],
  },
  'a user that was removed': {
    of: 'UserRemoval',
    decode: (body) => extensions.decodeUserRemoval(body, source),
    mayLack: ['keys_revoked', ...keyGaps.map((name) => `keys_revoked.0.${name}`)],
    ignores: keyGaps.map((name) => `keys_revoked.0.${name}`),
  },
  'a key just made': {
    of: 'NewEnrollmentKey',
    decode: (body) => decodeNewKey(body, source, ask),
    mayLack: ['id', 'name', 'max_uses', 'uses', 'expires_at'],
    ignores: ['id'],
  },
  'the keys': {
    of: 'EnrollmentKey',
    list: true,
    decode: (body) => decodeKeys(body, source),
    mayLack: ['0.max_uses', '0.uses', '0.expires_at'],
    ignores: [],
  },
  'a peer that was changed': {
    of: 'Peer',
    decode: (body) => decodeChangedPeer(body, source),
    mayLack: ['id', 'name', 'peer_type', 'endpoint', 'created_at'],
    ignores: [],
  },
  'the own devices in a network': {
    of: 'ListedPeer',
    list: true,
    decode: (body) => decodeListedPeers(body, source),
    mayLack: ['0.id', '0.name', '0.peer_type', '0.endpoint', '0.created_at'],
    ignores: [],
  },
  'a key for an own device': {
    of: 'OwnDeviceKey',
    decode: (body) => extensions.decodeOwnDeviceKey(body, source),
    mayLack: [],
    ignores: [],
  },
  'the rules of a network': {
    of: 'NetworkRules',
    decode: (body) => extensions.decodeRules(body, source),
    mayLack: [],
    ignores: [],
  },
  'the preview of rules': {
    of: 'RulesPreview',
    decode: (body) => extensions.decodeRulesPreview(body, source),
    mayLack: [],
    ignores: [],
  },
  'the rule that decides': {
    of: 'RuleDecision',
    decode: (body) => extensions.decodeRuleDecision(body, source),
    mayLack: ['rule'],
    ignores: [],
  },
  'a session': {
    of: 'Session',
    decode: (body) => decodeSession(body, source),
    mayLack: ['token_type', 'expires_at'],
    ignores: ['expires_at'],
  },
  'the sessions': {
    of: 'OpenSession',
    list: true,
    decode: (body) => extensions.decodeSessions(body, source),
    mayLack: ['0.device_name', '0.last_used_at', '0.address', '0.is_current'],
    ignores: ['0.is_current'],
  },
  'the number of sessions that ended': {
    of: 'SessionsEnded',
    decode: (body) => extensions.decodeSessionsEnded(body, source),
    mayLack: ['sessions_ended'],
    ignores: [],
  },
  'a profile': { of: 'Profile', decode: (body) => decodeProfile(body, source), mayLack: profile, ignores: profile },
  'the users': {
    of: 'User',
    list: true,
    decode: (body) => extensions.decodeUsers(body, source),
    mayLack: [],
    ignores: [],
  },
  'a user': { of: 'User', decode: (body) => extensions.decodeUser(body, source), mayLack: [], ignores: [] },
  'the personal tokens': {
    of: 'PersonalToken',
    list: true,
    decode: (body) => extensions.decodeTokens(body, source),
    mayLack: ['0.expires_at', '0.last_used_at'],
    ignores: [],
  },
  'a personal token just made': {
    of: 'NewPersonalToken',
    decode: (body) => extensions.decodeNewToken(body, source),
    mayLack: ['expires_at', 'last_used_at'],
    ignores: [],
  },
  'a login that waits for its approval': {
    of: 'DeviceCode',
    decode: (body) => extensions.decodeDeviceCode(body, source),
    mayLack: [],
    ignores: [],
  },
  'the audit': {
    of: 'AuditEntry',
    list: true,
    decode: (body) => extensions.decodeAudit(body, source),
    mayLack: ['0.actor.id', '0.actor.name', '0.target.id', '0.target.name', '0.address', '0.details'],
    ignores: [],
  },
  'the events': {
    of: 'Event',
    list: true,
    decode: (body) => extensions.decodeEvents(body, source),
    mayLack: ['0.peer', '0.route', '0.details'],
    ignores: [],
  },
  'who has applied a removal': {
    of: 'RemovalStatus',
    decode: (body) => extensions.decodeRemovals(body, source),
    mayLack: ['revision', 'pending.0.acknowledged_revision', 'pending.0.last_seen'],
    ignores: ['revision', 'pending.0.acknowledged_revision', 'pending.0.last_seen'],
  },
  'the health of a network': {
    of: 'Health',
    decode: (body) => extensions.decodeHealth(body, source),
    mayLack: healthGaps,
    ignores: healthGaps,
  },
};

/** A peer that is skipped is refused, as far as it goes. */
function refuseSkipped(skipped: readonly { readonly reason: string }[] = []): void {
  for (const { reason } of skipped) throw new BadReply(source.url, reason, 'none');
}

/**
 * A delta is decoded with the map that it changes, which no schema tells: see decode-delta.test.ts. A host need not read the reply to a
 * report, and the console alone reads the others.
 */
const elsewhere = [
  ...['NetworkDelta', 'ReportReply', 'HealthSummary', 'PeerDetails', 'PeerTraffic', 'NetworkTraffic'],
  ...[
    'ReachablePairs',
    'DeviceRequest',
    'DeviceDecision',
    'OwnDevice',
    'LoginMethods',
    'SingleSignOn',
    'CookieSession',
  ],
  ...['SecondFactors', 'FactorChallenge', 'AddedFactor', 'RecoveryCodes'],
];

let description: Description;
beforeAll(async () => {
  ({ description } = await readDescription());
});

test('every resource that a reply brings is read by the client', () => {
  const replies = Object.values(description.paths).flatMap((item) => Object.values(item));
  const brought = replies
    .flatMap(({ responses }) => Object.entries(responses))
    .flatMap(([status, { content }]) => (status.startsWith('2') ? Object.values(content ?? {}) : []))
    .flatMap(({ schema }) => {
      const { data } = schema.properties ?? {};
      const reference = data?.$ref ?? data?.items?.$ref;
      return reference === undefined ? [] : [reference.replace('#/components/schemas/', '')];
    });
  const read = [...Object.values(readings).map((reading) => reading.of), ...elsewhere];
  expect([...new Set(brought)].filter((name) => !read.includes(name))).toEqual([]);
  expect(brought.length).toBeGreaterThan(10);
});

describe.each(Object.entries(readings))('%s', (_, { of, list, mend = (value) => value, decode, mayLack, ignores }) => {
  const schemaOf = (): Schema => (list ? { type: 'array', items: { $ref: ref(of) } } : { $ref: ref(of) });
  const values = () => valuesOf(schemaOf(), description.components.schemas).map(mend);

  test('is read from whatever the served schema allows, with and without the envelope', () => {
    fc.assert(
      fc.property(values(), (value) => {
        const read = decode({ data: value }, value);
        expect(decode(value, value)).toEqual(read);
      }),
    );
  });

  test('is refused without a required field, but for those that another service may not have', () => {
    const accepted = spoil((value, way) => replaceAt(value, way, undefined));
    expect(accepted.toSorted()).toEqual(mayLack.toSorted());
  });

  test('is refused with a required field of another type, but for those that are not looked at', () => {
    const accepted = spoil((value, way) => {
      const right = readAt(value, way);
      return replaceAt(value, way, typeof right === 'object' && right !== null ? 'wrong' : { wrong: true });
    });
    expect(accepted.toSorted()).toEqual(ignores.toSorted());
  });

  /** The required fields whose loss or change no sample is refused for. */
  function spoil(change: (value: Value, way: Way) => unknown): string[] {
    const { schemas } = description.components;
    const samples = fc.sample(values(), { numRuns: 50, seed: 7 });
    return requiredWays(schemaOf(), schemas).flatMap((way) => {
      const present = samples.filter((value) => readAt(value, way) !== undefined);
      expect(present, way.join('.')).not.toEqual([]);
      const refused = present.filter((value) => isRefused(change(value, way), value));
      // A rule holds for each of them, or for none.
      expect([0, present.length], way.join('.')).toContain(refused.length);
      return refused.length === 0 ? [way.join('.')] : [];
    });
  }

  function isRefused(body: unknown, value: Value): boolean {
    try {
      decode({ data: body }, value);
      return false;
    } catch (error) {
      if (error instanceof BadReply) return true;
      throw error;
    }
  }
});

test('a schema that said something else would be noticed', () => {
  const { schemas } = description.components;
  const peer = resolve(ref('Peer'), schemas);
  for (const [name, other] of Object.entries<Schema>({
    address: { type: 'integer' },
    public_key: { type: 'string' },
  })) {
    const spoiled = { ...schemas, Peer: { ...peer, properties: { ...peer.properties, [name]: other } } };
    const check = fc.property(
      valuesOf({ $ref: ref('Peer') }, spoiled),
      (value) => void decodeChangedPeer(value, source),
    );
    expect(fc.check(check).failed).toBe(true);
  }
});

function ref(name: string): string {
  return `#/components/schemas/${name}`;
}

/** Peers have ids, keys and addresses of their own, and the addresses are of the network. */
function mendNetwork(network: Value): Value {
  const [start = ''] = String(network.private_cidr).split('/');
  const wide = lengthOf(network.private_cidr) > 28 ? `${start.replace(/\d+$/, '0')}/24` : network.private_cidr;
  const { first } = rangeOf(wide as Prefix);
  const peers = network.peers.map((peer: Value, index: number) => ({
    ...peer,
    id: index + 1,
    public_key: keyPair(index + 1).publicKey,
    address: addressAt(first + BigInt(index) + 1n),
  }));
  return { ...network, private_cidr: wide, peers };
}

/** The peer is one of the network. */
function mendEnrollment({ network, peer, ...rest }: Value): Value {
  const peers = network.peers.length === 0 ? [peer] : network.peers;
  const mended = mendNetwork({ ...network, peers });
  return { ...rest, network: mended, peer: mended.peers[0] };
}
