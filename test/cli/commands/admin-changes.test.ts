import { afterEach, describe, expect, it, vi } from 'vitest';
import * as events from '../../../src/app/inspect/events.ts';
import * as admin from '../../../src/cli/admin.ts';
import { events as eventsCommand } from '../../../src/cli/commands/events.ts';
import { createNetwork, listNetworks } from '../../../src/cli/commands/network.ts';
import { deleteNetwork, updateNetwork } from '../../../src/cli/commands/network-change.ts';
import { removePeer, updatePeer } from '../../../src/cli/commands/peer.ts';
import { resumePeer, suspendPeer } from '../../../src/cli/commands/peer-suspension.ts';
import * as sessions from '../../../src/cli/commands/session.ts';
import { whoami } from '../../../src/cli/commands/session.ts';
import { createToken, listTokens, revokeToken } from '../../../src/cli/commands/token.ts';
import { changePassword, createUser, listUsers, removeUser, updateUser } from '../../../src/cli/commands/user.ts';
import * as passwords from '../../../src/cli/input/password.ts';
import type { Command } from '../../../src/cli/parse/command.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused } from '../../../src/core/errors/index.ts';
import { runCommand } from './run-command.ts';

afterEach(() => vi.restoreAllMocks());

const office = { id: 1, name: 'office', private_cidr: '10.77.0.0/24', routes: ['10.0.0.0/8', '192.168.0.0/16'] };
const past = '2020-01-01T00:00:00.000Z';
const peerOf = (id: number, fields: object = {}) => {
  return { ...{ id, name: `peer-${id}`, peer_type: 'connector', address: `10.77.0.${id}`, endpoint: null }, ...fields };
};

type Calls = [name: string, ...given: unknown[]][];

/** Runs a command at a service with these replies, and returns its changes in their order. */
async function run(command: Command, given: object, replies: Record<string, unknown> = {}, isConfirmed = true) {
  vi.restoreAllMocks();
  const calls: Calls = [];
  const usual: Record<string, unknown> = {
    ...{ describes: true, listNetworks: [office], readNetwork: { ...office, peers: [peerOf(2)] }, listPeersOut: [] },
    ...{ updatePeer: peerOf(2), listKeys: [], readRemovals: [], updateNetwork: office, createNetwork: office },
  };
  const reads = ['describes', 'listNetworks', 'readNetwork', 'listPeersOut', 'listKeys', 'listUsers', 'listSessions'];
  const service = new Proxy({} as Record<string, unknown>, {
    get: (_, name: string) =>
      name === 'then'
        ? undefined
        : async (...input: unknown[]) => {
            if (!reads.includes(name)) calls.push([name, ...input]);
            const reply = { ...usual, ...replies }[name];
            if (reply instanceof Error) throw reply;
            return typeof reply === 'function' ? reply(...input) : reply;
          },
  });
  const address = { url: 'https://cp.example.net', insecureHttp: false };
  vi.spyOn(admin, 'openAdmin').mockResolvedValue(service as never);
  vi.spyOn(admin, 'openAdminAt').mockResolvedValue({ admin: service as never, address });
  vi.spyOn(passwords, 'hasTerminal').mockReturnValue(false);
  vi.spyOn(passwords, 'obtainPassword').mockResolvedValue(new Secret('own'));
  const outcome = await runCommand(command, { ...(isConfirmed && command.flags.yes && { yes: true }), ...given });
  return { ...outcome, calls };
}

const here = { network: 'office', peer: 'peer-2' };

describe('cpn peer update', () => {
  it.each<[object, object]>([
    [{ route: ['10.0.0.0/8'] }, { routes: ['10.0.0.0/8'] }],
    [{ routes: true }, { routes: null }],
    [{ routes: false }, { routes: [] }],
    [{ priority: '0' }, { priority: 0 }],
    [{ endpoint: 'none' }, { endpoint: null }],
    [{ endpoint: '203.0.113.1:1' }, { endpoint: '203.0.113.1:1' }],
    [{ name: 'edge' }, { name: 'edge' }],
    [{ expires: 'never' }, { expires_at: null }],
    [{ tag: ['web', 'db', 'web'] }, { tags: ['web', 'db'] }],
    [{ tags: false }, { tags: [] }],
  ])('with %j sends %j, and no other field', async (given, fields) => {
    expect((await run(updatePeer, { ...here, ...given })).calls).toEqual([['updatePeer', 1, 2, fields]]);
  });

  it.each<[object, string]>([
    [{ tag: ['Web'] }, '--tag "Web" is no tag'],
    [{ tag: ['web'], tags: false }, '--tag and --no-tags exclude each other'],
    [{ tags: true }, 'give --tag TAG, or --no-tags'],
  ])('with %j changes nothing: %s', async (given, problem) => {
    const { error, calls } = await run(updatePeer, { ...here, ...given });
    expect([error?.message, calls]).toEqual([expect.stringContaining(problem), []]);
  });

  it('sets tags only where the service has them', async () => {
    const { error, calls } = await run(updatePeer, { ...here, tags: false }, { describes: false });
    expect([error?.message, calls]).toEqual([expect.stringContaining('does not support tags'), []]);
  });

  it('warns where the service ignores a priority, and not where it has it', async () => {
    const warned = async (priority: string, fields: object) =>
      (await run(updatePeer, { ...here, priority }, { updatePeer: peerOf(2, fields) })).stderr.includes('priorities');
    expect(await warned('7', {})).toBe(true);
    expect(await warned('7', { priority: 7 })).toBe(false);
    expect(await warned('0', {})).toBe(false);
  });

  it('warns of routes that no other connector serves any more, for which an expired one does not count', async () => {
    const lost = async (given: object, other: object) => {
      const peers = [peerOf(2), peerOf(3, other)];
      const { stderr } = await run(updatePeer, { ...here, ...given }, { readNetwork: { ...office, peers } });
      return /serves (.*): hosts/.exec(stderr)?.[1] ?? null;
    };
    expect(await lost({ routes: false }, {})).toBeNull();
    expect(await lost({ routes: false }, { expires_at: past })).toBe('10.0.0.0/8, 192.168.0.0/16');
    expect(await lost({ route: ['10.0.0.0/8'] }, { expires_at: past })).toBe('192.168.0.0/16');
    expect(await lost({ routes: true }, { expires_at: past })).toBeNull();
    expect(await lost({ name: 'x' }, { expires_at: past })).toBeNull();
  });

  it('says that keys let a peer join again only where it gets an end', async () => {
    const noted = async (given: object) =>
      (await run(updatePeer, { ...here, ...given }, { listKeys: [{}, {}] })).stderr.includes(
        'usable enrolment keys: 2',
      );
    expect(await noted({ expires: '12h' })).toBe(true);
    expect(await noted({ expires: 'never' })).toBe(false);
    expect(await noted({ name: 'x' })).toBe(false);
  });
});

describe('cpn peer suspend and resume', () => {
  it('suspends after a confirmation, and names keys and hosts that are left', async () => {
    const declined = await run(suspendPeer, here, {}, false);
    expect([declined.error?.message, declined.calls]).toEqual([
      expect.stringContaining('Suspend peer-2 (10.77.0.2)? Peers of office drop it until it is resumed.'),
      [],
    ]);
    const pending = [{ id: 3, name: 'web', last_seen: null }];
    const { calls, stderr } = await run(suspendPeer, here, { listKeys: [{}], readRemovals: pending });
    expect(calls).toEqual([
      ['updatePeer', 1, 2, { suspended: true }],
      ['readRemovals', 1, 10],
    ]);
    expect(stderr).toContain('usable enrolment keys: 1');
    expect(stderr).toContain('hosts that have not applied it: web (no request lately)');
  });

  it('still says that it is done where keys and hosts cannot be read', async () => {
    const refused = new Refused(403, 'reading', 'no', null);
    const { exitCode, stderr } = await run(suspendPeer, here, { listKeys: refused, readRemovals: refused });
    expect(exitCode).toBe(0);
    expect(stderr).toContain('suspended peer peer-2');
    expect(stderr).toContain('usable enrolment keys: unknown number');
    expect(stderr).toContain('the hosts that have applied it are unknown');
  });

  it('resumes a peer, but one that has expired only with another end', async () => {
    const future = new Date(Date.now() + 3_600_000).toISOString();
    const resume = (expires_at: string | undefined, given: object = {}) =>
      run(resumePeer, { ...here, ...given }, { listPeersOut: [peerOf(2, { suspended_at: past, expires_at })] });
    for (const end of [undefined, future]) {
      expect((await resume(end)).calls).toEqual([['updatePeer', 1, 2, { suspended: false }]]);
    }
    const { error, calls } = await resume(past);
    expect([error?.message, calls]).toEqual([`peer-2 expired on ${past}; give a new --expires`, []]);
    expect((await resume(past, { expires: 'never' })).calls[0]?.[3]).toEqual({ suspended: false, expires_at: null });
  });
});

describe('cpn peer remove', () => {
  it('removes the peer once it is confirmed, then waits for hosts as long as it may', async () => {
    const { calls, stderr } = await run(removePeer, { ...here, wait: '0' });
    expect(calls).toEqual([
      ['removePeer', 1, 2],
      ['readRemovals', 1, 0],
    ]);
    expect(stderr).toContain('removed peer peer-2 (2) from network office\nall hosts have applied it\n');
    const { stdout } = await run(removePeer, { ...here, json: true }, { readRemovals: null });
    expect(JSON.parse(stdout)).toEqual({ id: 2, name: 'peer-2', pending: null });
    expect((await run(removePeer, here, {}, false)).calls).toEqual([]);
  });
});

describe('cpn network', () => {
  it('may keep its own name, and takes no other one that is in use', async () => {
    expect((await run(updateNetwork, { network: '1', name: 'office' })).calls).toHaveLength(1);
    const lab = { ...office, id: 2, name: 'lab' };
    const taken = await run(updateNetwork, { network: '2', name: 'office' }, { listNetworks: [office, lab] });
    expect([taken.error?.message, taken.calls]).toEqual([
      '--name "office" is the name of network 1; choose another name',
      [],
    ]);
    expect((await run(createNetwork, { name: 'office', cidr: '10.1.0.0/16' })).calls).toEqual([]);
    expect((await run(createNetwork, { name: 'lab', cidr: '10.1.0.0/16' })).calls).toHaveLength(1);
  });

  it('is changed in nothing but the named fields', async () => {
    const change = async (given: object) => (await run(updateNetwork, { network: '1', ...given })).calls;
    expect(await change({ description: 'x' })).toEqual([['updateNetwork', 1, { description: 'x' }]]);
    expect(await change({ 'max-age': 'off' })).toEqual([['updateNetwork', 1, { map_max_age_seconds: null }]]);
    expect(await change({ spread: true })).toEqual([['updateNetwork', 1, { spread: true }]]);
    expect(await change({ spread: false })).toEqual([['updateNetwork', 1, { spread: false }]]);
    expect(await change({ approval: 'required' })).toEqual([['updateNetwork', 1, { approval: 'required' }]]);
    expect(await change({})).toEqual([]);
  });

  describe('has domains behind routes', () => {
    const entry = { route: '192.168.50.0/24', dns_servers: ['192.168.50.53'], domains: ['corp.example'] };
    const both = '192.168.60.0/24 = 192.168.60.1,Shop.example., 192.168.60.2,bücher.example';
    const shop = {
      route: '192.168.60.0/24',
      dns_servers: ['192.168.60.1', '192.168.60.2'],
      domains: ['shop.example', 'xn--bcher-kva.example'],
    };

    it.each<[object, object[]]>([
      [{ 'route-dns': ['192.168.50.0/24=192.168.50.53,corp.example'] }, [entry]],
      [{ 'route-dns': ['192.168.50.0/24=corp.example,192.168.50.53', both] }, [entry, shop]],
      [{ 'route-dns': ['none'] }, []],
    ])('with %j: %j', async (given, route_dns) => {
      expect((await run(updateNetwork, { network: '1', ...given })).calls).toEqual([
        ['updateNetwork', 1, { route_dns }],
      ]);
      const made = { name: 'lab', private_cidr: '10.1.0.0/16', routes: [] };
      const { calls } = await run(createNetwork, { name: 'lab', cidr: '10.1.0.0/16', ...given });
      expect(calls).toEqual([['createNetwork', { ...made, route_dns }]]);
    });

    const like = 'write it like 192.168.50.0/24=192.168.50.53,corp.example';
    it.each<[string[], string]>([
      [['corp.example'], `--route-dns "corp.example" has no "="; ${like}`],
      [['192.168.50.0/24=corp.example'], `names no DNS server; ${like}`],
      [['192.168.50.0/24=192.168.50.53'], `names no domain; ${like}`],
      [['192.168.50.0/24='], `--route-dns "192.168.50.0/24=" names no DNS server and no domain; ${like}`],
      [['192.168.50.0/24=, ,'], `names no DNS server and no domain; ${like}`],
      [['192.168.50.0/24=192.168.50.53,,corp.example'], `has an empty item; ${like}`],
      [['=192.168.50.53,corp.example'], `--route-dns "=192.168.50.53,corp.example" names no route; ${like}`],
      [
        ['192.168.50.0=192.168.50.53,corp.example'],
        '--route-dns "192.168.50.0" is not an address range; write it like',
      ],
      ...(
        [
          ['https://192.168.50.53', 'is a URL'],
          ['https://192.168.50.53:853/dns-query', 'is a URL'],
          ['192.168.50.53:53', 'has a port'],
          ['192.168.50.53/32', 'is an address range'],
        ] as const
      ).map(([server, rule]): [string[], string] => [
        [`192.168.50.0/24=${server},corp.example`],
        `--route-dns "${server}" ${rule}; write 192.168.50.53; hosts send queries to port 53`,
      ]),
      [
        ['192.168.50.0/24=fd00::53,corp.example'],
        '--route-dns "fd00::53" is not an IPv4 address; give a DNS server in',
      ],
      [['192.168.50.0/24=10.0.0.1,a.example'], '"10.0.0.1" is outside the route 192.168.50.0/24; give a DNS server in'],
      ...(
        [
          ['*.corp.example', 'is a wildcard'],
          ['https://corp.example/x', 'is a URL'],
          ['corp.example:53', 'has a port'],
        ] as const
      ).map(([domain, rule]): [string[], string] => [
        [`192.168.50.0/24=192.168.50.53,${domain}`],
        `--route-dns "${domain}" ${rule}; write corp.example, which includes all names below it`,
      ]),
      [
        ['192.168.50.7/24=192.168.50.53,corp.example'],
        '--route-dns "192.168.50.7/24" has host bits set; you probably mean 192.168.50.0/24',
      ],
      [['192.168.50.0/24=192.168.50.530,corp.example'], '--route-dns "192.168.50.530" is not an IP address'],
      [['192.168.50.0/24=192.168.50.53,corp'], '--route-dns "corp" has one label'],
      [['192.168.50.0/24=10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,a.example'], 'names 4 DNS servers; give 3 at most'],
      [[`192.168.50.0/24=10.0.0.1${',a.example'.repeat(17)}`], 'names 17 domains; give 16 at most'],
      [
        Array(17).fill('192.168.50.0/24=10.0.0.1,a.example'),
        '--route-dns was given 17 times; give it 16 times at most',
      ],
      [['none', '192.168.50.0/24=192.168.50.53,corp.example'], '--route-dns none excludes other values'],
    ])('but %j changes nothing: %s', async (texts, problem) => {
      const { error, calls } = await run(updateNetwork, { network: '1', 'route-dns': texts });
      expect([error?.message, calls]).toEqual([expect.stringContaining(problem), []]);
    });

    it('only where the service has them', async () => {
      const given = { 'route-dns': ['none'], name: 'lab', cidr: '10.1.0.0/16' };
      for (const command of [updateNetwork, createNetwork]) {
        const { error, calls } = await run(command, { network: '1', ...given }, { describes: false });
        expect([error?.message, calls]).toEqual([
          expect.stringContaining('does not support domains behind routes'),
          [],
        ]);
      }
    });

    it('in the list, which has no column for them without any', async () => {
      const listed = { ...office, route_dns: [entry, shop] };
      const { stdout } = await run(listNetworks, {}, { listNetworks: [listed, { ...office, name: 'lab' }] });
      expect(stdout).toMatch(/ domains\n.* corp\.example, shop\.example, xn--bcher-kva\.example\n.*lab/s);
      expect((await run(listNetworks, {})).stdout).not.toContain('domains');
      const json = await run(listNetworks, { json: true }, { listNetworks: [listed] });
      expect(JSON.parse(json.stdout).networks[0].route_dns).toEqual([entry, shop]);
    });
  });

  it('is deleted once its name is confirmed, and waits for hosts of it only where it has some', async () => {
    const { calls, stderr } = await run(deleteNetwork, { network: 'office' });
    expect(calls).toEqual([
      ['deleteNetwork', 1],
      ['readRemovals', 1, 45],
    ]);
    expect(stderr).toContain('all hosts have taken their tunnel down');
    expect((await run(deleteNetwork, { network: 'office', wait: '0' })).calls[1]).toEqual(['readRemovals', 1, 0]);
    const declined = await run(deleteNetwork, { network: 'office' }, {}, false);
    expect([declined.calls, declined.stderr]).toEqual([[], expect.stringContaining('Hosts that lose it: peer-2.')]);
    const older = await run(deleteNetwork, { network: 'office' }, { describes: false });
    expect([older.calls, older.stderr]).toEqual([
      [['deleteNetwork', 1]],
      expect.stringContaining('does not state deletions'),
    ]);
    const empty = await run(deleteNetwork, { network: 'office' }, { readNetwork: { ...office, peers: [] } });
    expect(empty.stderr).not.toContain('taken their tunnel down');
  });
});

describe('cpn user', () => {
  const users = [{ id: 5, email: 'you@example.net', role: 'member', created_at: past }];
  const required = new Refused(422, 'x', 'no', null, {
    ...{ repeated: false, reasoned: true, deleted: null },
    fields: [{ field: 'current_password', rule: 'is wrong' }],
  });

  it('keeps the keys of a user only where that is asked for', async () => {
    for (const keeps of [false, true]) {
      const given = { user: '5', 'keep-keys': keeps };
      const removed = await run(removeUser, given, { listUsers: users, deleteUser: { keys_revoked: null } });
      expect(removed.calls).toEqual([['deleteUser', 5, { keep_keys: keeps }]]);
      const changed = await run(updateUser, { ...given, role: 'viewer' }, { listUsers: users, updateUser: users[0] });
      const fields = { role: 'viewer', ...(keeps && { keep_keys: true }), current_password: undefined };
      expect(changed.calls).toEqual([['updateUser', 5, fields]]);
    }
  });

  it('says which keys were revoked with the user', async () => {
    const keys_revoked = [{ id: 9, name: 'web', network: { id: 1, name: 'office' } }];
    const replies = { listUsers: users, deleteUser: { keys_revoked }, updateUser: { ...users[0], keys_revoked } };
    const words = 'revoked enrolment keys: web (9) of office (1)\n';
    expect((await run(removeUser, { user: '5' }, replies)).stderr).toContain(words);
    expect((await run(updateUser, { user: '5', role: 'viewer' }, replies)).stderr).toContain(words);
  });

  it('needs the own password for another user or role in a file, where there is no terminal to prompt on', async () => {
    for (const [command, given] of [
      [createUser, { email: 'new@example.net', role: 'member' }],
      [updateUser, { user: '5', role: 'admin' }],
    ] as const) {
      const replies = { listUsers: users, createUser: required, updateUser: required };
      const { error } = await run(command, given, replies);
      expect(error?.message).toContain('give --own-password-file');
    }
  });

  it('with another password stores the session that replaces its own, and lists what else is left', async () => {
    const reply = {
      ...{ access_token: new Secret('new'), sessions_ended: 2, tokens_revoked: [{ id: 3, name: 'ci' }] },
      ...{ users_made: users, keys_made: [] },
    };
    const changed = async (given: object, fields: object = {}) => {
      const kept = vi.fn(async () => {});
      const calls = run(changePassword, given, {
        changePassword: () => {
          vi.spyOn(sessions, 'keepSession').mockImplementation(kept);
          return { ...reply, ...fields };
        },
      });
      return { ...(await calls), kept: kept.mock.calls as unknown as unknown[][] };
    };
    const { kept, stderr, calls } = await changed({});
    expect(kept[0]?.[2]).toMatchObject({ token: reply.access_token, expiresAt: null });
    expect(calls[0]?.[1]).not.toHaveProperty('keep_tokens');
    expect(stderr).toContain('revoked personal tokens: ci (3)');
    expect(stderr).toContain('users that you created or gave a role: you@example.net (5), member');
    const other = await changed({ 'keep-tokens': true, json: true }, { access_token: undefined, tokens_revoked: null });
    expect([other.kept, other.calls[0]?.[1]]).toEqual([[], expect.objectContaining({ keep_tokens: true })]);
    expect(other.stdout).not.toContain('access_token');
    expect((await changed({}, { tokens_revoked: null })).stderr).toContain('does not report revoked tokens');
  });
});

describe('a limit to networks', () => {
  const lab = { ...office, id: 2, name: 'lab' };
  const user = { id: 5, email: 'you@example.net', role: 'member', created_at: past, networks: [2] };
  const token = { id: 3, name: 'ci', created_at: past, expires_at: null, last_used_at: null, networks: [2, 9] };
  const replies = {
    ...{ listNetworks: [office, lab], listUsers: [user], createUser: user, updateUser: user },
    ...{ listTokens: [token], listSessions: [], createToken: { ...token, access_token: new Secret('value') } },
  };

  it.each<[Command, object, object | undefined]>([
    [createUser, { email: 'new@example.net', role: 'member', network: ['office', '2'] }, { networks: [1, 2] }],
    [createUser, { email: 'new@example.net', role: 'member' }, {}],
    [updateUser, { user: '5', network: ['lab'] }, { networks: [2] }],
    [updateUser, { user: '5', role: 'viewer', 'all-networks': true }, { role: 'viewer', networks: null }],
    [updateUser, { user: '5', role: 'viewer' }, { role: 'viewer' }],
    [createToken, { name: 'ci', network: ['lab'] }, { networks: [2] }],
    [createToken, { name: 'ci' }, {}],
  ])('is sent by %o with %j', async (command, given, fields) => {
    const { calls } = await run(command, given, replies);
    const sent = calls.flatMap((call) => (/^(create|update)/.test(call[0]) ? [call.at(-1)] : []));
    expect(sent).toEqual([expect.objectContaining(fields ?? {})]);
    if (!('network' in given || 'all-networks' in given)) expect(sent[0]).not.toHaveProperty('networks');
  });

  it.each<[Command, object, object, string]>([
    [updateUser, { user: '5' }, {}, 'give --role, --network or --all-networks'],
    [updateUser, { user: '5', network: ['lab'], 'all-networks': true }, {}, 'exclude each other'],
    [updateUser, { user: '5', network: ['attic'] }, {}, 'there is no network "attic"'],
    [updateUser, { user: '5', network: ['lab'] }, { describes: false }, 'cannot limit users and tokens'],
    [createToken, { name: 'ci', network: ['lab'] }, { describes: false }, 'cannot limit users and tokens'],
    [createUser, { email: 'n@example.net', role: 'admin', network: ['lab'] }, { describes: false }, 'cannot limit'],
  ])('is not sent by %o with %j and %j: %s', async (command, given, others, problem) => {
    const { error, calls } = await run(command, given, { ...replies, ...others });
    expect([error?.message, calls]).toEqual([expect.stringContaining(problem), []]);
  });

  it('is shown by names, where there is one', async () => {
    const listed = async (command: Command, others: object = {}) =>
      (await run(command, {}, { ...replies, ...others })).stdout;
    expect(await listed(listUsers)).toMatch(/since +networks\n.* lab\n/);
    expect(await listed(listUsers, { listUsers: [user, { ...user, networks: null }] })).toMatch(/ all\n$/);
    expect(await listed(listUsers, { listUsers: [{ ...user, networks: [] }] })).toMatch(/ none\n$/);
    expect(await listed(listUsers, { listUsers: [{ ...user, networks: undefined }] })).not.toContain('networks');
    expect(await listed(listTokens)).toMatch(/last used +networks\n.* lab, 9\n/);
    expect(await listed(listTokens, { listTokens: [{ ...token, networks: null }] })).not.toContain('networks');
    const profile = { email: 'you@example.net', role: 'member', organization: null };
    expect(await listed(whoami, { profile: { ...profile, networks: [2] } })).toBe(
      'you@example.net, member; limited to networks: lab\n',
    );
    expect(await listed(whoami, { profile })).toBe('you@example.net, member\n');
    expect((await run(updateUser, { user: '5', network: ['lab'] }, replies)).stdout).toContain(
      'member, limited to networks: lab',
    );
    expect((await run(createToken, { name: 'ci', network: ['lab'] }, replies)).stderr).toContain(
      'limited to networks: lab, 9',
    );
  });
});

describe('cpn token', () => {
  const listed = [{ id: 17, device_name: 'laptop', is_current: true }];

  it('ends a session with --session, and else revokes a token', async () => {
    const session = await run(revokeToken, { token: '17', session: true }, { listSessions: listed });
    expect([session.calls, session.stderr]).toEqual([[['deleteSession', 17]], 'ended session 17 (laptop)\n']);
    const token = await run(revokeToken, { token: 'ci' }, { listTokens: [{ id: 3, name: 'ci' }] });
    expect(token.calls.filter(([name]) => name !== 'listTokens')).toEqual([['deleteToken', 3]]);
    const own = await run(revokeToken, { token: '17', session: true }, { listSessions: listed }, false);
    expect(own.error?.message).toContain('End session 17 (laptop), which is this one?');
    const none = await run(revokeToken, { token: '17', session: true }, { listSessions: null });
    expect(none.error?.message).toContain('does not list sessions');
  });

  describe('for the sessions of a user', () => {
    const listUsers = [{ id: 5, email: 'ada@example.net', role: 'member' }];
    const replies = {
      listUsers,
      listUserSessions: (id: number) => (id === 5 ? listed : []),
      endUserSessions: { sessions_ended: 2 },
    };
    const user = 'ada@example.net';

    it('lists them, without tokens', async () => {
      const { stdout, calls } = await run(listTokens, { user, json: true }, replies);
      expect([JSON.parse(stdout), calls]).toEqual([{ sessions: listed }, [['listUserSessions', 5]]]);
      const rows = [{ ...listed[0], created_at: past, expires_at: past, last_used_at: past, address: null }];
      const shown = await run(listTokens, { user }, { ...replies, listUserSessions: rows });
      expect(shown.stdout).toMatch(/last used.*\n.*17 +laptop/);
      expect((await run(listTokens, { user }, { ...replies, listUserSessions: [] })).stderr).toContain(
        'has no session',
      );
    });

    it('ends one of them, or all', async () => {
      const one = await run(revokeToken, { token: 'laptop', session: true, user }, replies);
      expect([one.calls.at(-1), one.stderr]).toEqual([
        ['endUserSession', 5, 17],
        'ended session 17 (laptop) of ada@example.net\n',
      ]);
      const all = await run(revokeToken, { token: 'all', session: true, user }, replies);
      expect([all.calls, all.stderr]).toEqual([[['endUserSessions', 5]], 'ended the sessions of ada@example.net: 2\n']);
      const unknown = { ...replies, endUserSessions: { sessions_ended: null } };
      const repeated = await run(revokeToken, { token: 'all', session: true, user }, unknown);
      expect(repeated.stderr).toBe('ended the sessions of ada@example.net\n');
      const json = await run(revokeToken, { token: 'all', session: true, user, json: true }, replies);
      expect(JSON.parse(json.stdout)).toEqual({ user: 5, sessions_ended: 2 });
    });

    it('ends nothing without --yes, nor a personal token', async () => {
      for (const token of ['all', '17']) {
        const { error, calls } = await run(revokeToken, { token, session: true, user }, replies, false);
        expect(error?.message).toContain('of ada@example.net?');
        expect(calls.filter(([name]) => name.startsWith('end'))).toEqual([]);
      }
      const { error, calls } = await run(revokeToken, { token: 'ci', user }, replies);
      expect([error?.message, calls]).toEqual([expect.stringContaining('--user goes with --session'), []]);
    });
  });

  it('is alone on stdout, and valid until it is revoked or ends', async () => {
    const made = { id: 3, name: 'ci', access_token: new Secret('cpt_x'), expires_at: null };
    const { stdout, stderr, calls } = await run(createToken, { name: 'ci' }, { createToken: made });
    expect([stdout, calls]).toEqual(['cpt_x\n', [['createToken', { name: 'ci', password: undefined }]]]);
    expect(stderr).toContain('valid until it is revoked');
    const until = await run(
      createToken,
      { name: 'ci', 'expires-in-days': '1' },
      { createToken: { ...made, expires_at: past } },
    );
    expect([until.stderr, until.calls[0]?.[1]]).toEqual([
      expect.stringContaining(`valid until ${past}`),
      expect.objectContaining({ expires_in_days: 1 }),
    ]);
  });
});

describe('cpn events --follow', () => {
  const event = (id: number, type = 'peer.online') => {
    return { id, at: past, type, network: 1, peer: { id: 2, name: 'web' }, route: null, details: {} };
  };
  const follow = async (given: object, found: object[], newest: object | null, later: object[]) => {
    const begun: unknown[] = [];
    const reply = run(
      eventsCommand,
      { network: 'office', follow: true, ...given },
      {
        describes: () => {
          vi.spyOn(events, 'readEvents').mockResolvedValue(found as never);
          vi.spyOn(events, 'findOlderNewest').mockResolvedValue(newest as never);
          vi.spyOn(events, 'followEvents').mockImplementation(async function* (
            _: unknown,
            __: unknown,
            options: object,
          ) {
            begun.push((options as { last: { id: number } }).last.id);
            yield* later;
          } as never);
          return true;
        },
      },
    );
    const { stdout, stderr } = await reply;
    return {
      ids: stdout
        .trim()
        .split('\n')
        .map((line) => Number.parseInt(line, 10)),
      stderr,
      begun,
    };
  };

  it('goes on after the last event that it has shown', async () => {
    expect(await follow({}, [event(7), event(8)], null, [event(9)])).toMatchObject({ ids: [7, 8, 9], begun: [8] });
  });

  it('goes on after the newest event where there are none after the given one', async () => {
    const { begun, stderr } = await follow({ after: '99' }, [], event(12), []);
    expect([begun, stderr]).toEqual([[12], 'there are no events after 99; the newest is 12\n']);
    expect((await follow({ after: '0' }, [], null, [])).begun).toEqual([0]);
  });

  it('shows only events of the given types', async () => {
    const later = [event(8, 'peer.offline'), event(9, 'route.dead'), event(10)];
    expect(
      (await follow({ type: ['peer.offline', 'route.dead'] }, [event(7, 'peer.offline')], null, later)).ids,
    ).toEqual([7, 8, 9]);
  });
});
