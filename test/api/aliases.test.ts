import { describe, expect, test } from 'vitest';
import { aliases } from '../../src/api/aliases.ts';
import {
  decodeChangedPeer,
  decodeNewKey,
  decodeProfile,
  decodeSession,
  decodeWholeNetwork,
} from '../../src/api/decode/admin.ts';
import { decodeEnrollment } from '../../src/api/decode/enrollment.ts';
import { readPages } from '../../src/api/pages.ts';
import { BadReply } from '../../src/core/errors/index.ts';
import { keyPair } from '../core/samples.ts';
import { enrollmentBody, networkBody, peerBody, source, without } from './samples.ts';

type Body = Readonly<Record<string, unknown>>;

/** What a service may send in each field, under each of its names, ours first. */
interface Group {
  readonly sample: Body;
  readonly read: (body: Body) => unknown;
  readonly names: Readonly<Record<string, readonly [string, ...string[]]>>;
}

const at = '2026-03-01T12:00:00.000Z';
const { publicKey } = keyPair(1);
const asked = { publicKey, name: 'asked', type: 'origin', endpoint: null } as const;
const enroll = (body: Body) => {
  const { accessToken, ...rest } = decodeEnrollment(body, source, asked);
  return { ...rest, token: accessToken?.reveal() };
};
const own = { id: 31, name: 'edge', public_key: publicKey, address: '10.77.0.31' };
const { peers, ...network } = networkBody();
const config = `[Interface]\nAddress = 10.77.0.31/16\n[Peer]\nPublicKey = ${keyPair(2).publicKey}\nAllowedIPs = 10.77.0.2/32\n`;

/** The paths that a list is read at, where its first page is `body` and says no more of the next one. */
async function pathsOf(body: Body): Promise<string[]> {
  const paths: string[] = [];
  const read = async (path: string) => {
    paths.push(path);
    return { body: paths.length === 1 ? body : {}, headers: {}, size: 1 };
  };
  for await (const _ of readPages({ base: new URL('https://cp.example.net/'), secrets: [] }, '/api/users', read));
  return paths;
}

const groups: Readonly<Record<string, Group>> = {
  'a network': {
    sample: networkBody(),
    read: (body) => decodeWholeNetwork(body, source),
    names: {
      id: ['id', 'network_id'],
      name: ['name', 'network_name'],
      cidr: ['private_cidr', 'privateCidr', 'cidr', 'network_cidr', 'subnet'],
      routes: ['routes', 'advertised_routes', 'private_routes'],
      peers: ['peers', 'members', 'nodes'],
    },
  },
  'a network of another kind': {
    sample: networkBody({ vpn_type: 'openvpn' }),
    read: (body) => messageOf(() => decodeWholeNetwork(body, source)),
    names: { vpnType: ['vpn_type', 'vpnType'] },
  },
  'a peer': {
    sample: peerBody(1, { peer_type: 'admin_device', routes: ['192.168.10.0/24'] }),
    read: (body) => decodeChangedPeer(body, source),
    names: {
      id: ['id', 'peer_id', 'uuid'],
      name: ['name', 'peer_name', 'hostname'],
      type: ['peer_type', 'peerType', 'type'],
      publicKey: ['public_key', 'publicKey', 'pubkey', 'wireguard_public_key'],
      address: ['address', 'ip', 'ip_address', 'ipAddress', 'private_ip', 'assigned_ip', 'tunnel_ip', 'vpn_ip'],
      endpoint: ['endpoint', 'public_endpoint'],
      routes: ['routes', 'served_routes'],
      createdAt: ['created_at', 'createdAt'],
    },
  },
  'an enrolment': {
    sample: enrollmentBody({ peer: own }),
    read: enroll,
    names: {
      peer: ['peer', 'wireguard_peer', 'node'],
      network: ['network', 'private_network'],
      accessToken: ['access_token', 'accessToken', 'peer_token', 'token'],
    },
  },
  'an enrolment in one object': {
    sample: { ...own, peers, network_id: network.id, network_name: 'office' },
    read: enroll,
    names: { flatId: ['network_id', 'networkId'], flatName: ['network_name', 'networkName'] },
  },
  'an enrolment with a wg-quick text': {
    sample: { config },
    read: enroll,
    names: { config: ['config', 'wg_config', 'wireguard_config', 'wg_quick', 'configuration'] },
  },
  'an enrolment key': {
    sample: { id: 5, name: 'rack', enrollment_token: 'cpn_new', max_uses: 7, uses: 3, expires_at: at },
    read: (body) => decodeNewKey(body, source, { name: 'asked', max_uses: 1, expires_in_hours: 1 }),
    names: {
      id: ['id', 'key_id'],
      token: ['enrollment_token', 'enrollmentToken', 'enrollment_key', 'token', 'key'],
      maxUses: ['max_uses', 'maxUses'],
      uses: ['uses', 'used'],
      expiresAt: ['expires_at', 'expiresAt'],
    },
  },
  'a session': {
    sample: { access_token: 'cpa_1', expires_at: at },
    read: (body) => {
      const { token, expiresAt } = decodeSession(body, source);
      return [token.reveal(), expiresAt];
    },
    names: { token: ['access_token', 'accessToken', 'token'], expiresAt: ['expires_at', 'expiresAt'] },
  },
  'a session by another kind of token': {
    sample: { access_token: 'cpa_1', token_type: 'MAC' },
    read: (body) => messageOf(() => decodeSession(body, source)),
    names: { type: ['token_type', 'tokenType'] },
  },
  'a profile': {
    sample: { user: { email: 'a@example.net', role: 'admin', organization: { id: 1, name: 'Example' } } },
    read: (body) => decodeProfile(body, source),
    names: { user: ['user', 'profile'] },
  },
  'a profile in the reply itself': {
    sample: { email: 'a@example.net', role: 'admin', organization: { id: 1, name: 'Example' } },
    read: (body) => decodeProfile(body, source),
    names: { organization: ['organization', 'organisation', 'team'] },
  },
  'a page': { sample: { links: { next: '?page=2' } }, read: pathsOf, names: { links: ['links', '_links'] } },
  'the link of a page': {
    sample: { href: '?page=2' },
    read: (next) => pathsOf({ links: { next } }),
    names: { address: ['href', 'url'] },
  },
  'a page by its number': {
    sample: { meta: { current_page: 4, last_page: 5 } },
    read: pathsOf,
    names: { meta: ['meta', 'pagination'] },
  },
  'the number of a page': {
    sample: { current_page: 4, last_page: 5 },
    read: (meta) => pathsOf({ meta }),
    names: { current: ['current_page', 'currentPage'], last: ['last_page', 'lastPage'] },
  },
};

function messageOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof BadReply) return error.message.replace(/\w*type/i, 'type');
    throw error;
  }
  throw new Error('the body was read');
}

const rows = Object.entries(groups).flatMap(([group, { names }]) =>
  Object.values(names).flatMap(([first, ...others]) => others.map((name) => [group, first, name] as const)),
);

describe('a service may call a field of a reply otherwise:', () => {
  test.each(rows)('of %s its %s is read as %s', async (group, first, name) => {
    const { sample, read } = groups[group] ?? expect.unreachable();
    const renamed = { ...without(sample, first), [name]: sample[first] };
    const expected = await read(sample);
    expect(await read(renamed)).toEqual(expected);
    // A field that is null, as one that is not there, is another name's.
    expect(await read({ ...renamed, [first]: null })).toEqual(expected);
    expect(await read({ ...sample, [name]: null })).toEqual(expected);
  });

  test.each(Object.keys(groups))('of %s each of these fields matters', async (group) => {
    const { sample, read, names } = groups[group] ?? expect.unreachable();
    for (const [first] of Object.values(names)) {
      const outcome = await Promise.resolve()
        .then(() => read(without(sample, first)))
        .catch((error: unknown) => (error instanceof Error ? 'refused' : error));
      expect(outcome, first).not.toEqual(await read(sample));
    }
  });

  test('no field with several names is without a row here', () => {
    const tested = rows.map(([, first, name]) => `${first} ${name}`);
    const all = Object.values(aliases).flatMap((group) =>
      Object.values<readonly string[]>(group).flatMap(([first, ...others]) => others.map((name) => `${first} ${name}`)),
    );
    expect([...new Set(all)].toSorted()).toEqual([...new Set(tested)].toSorted());
  });
});
