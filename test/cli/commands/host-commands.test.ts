import { afterEach, describe, expect, it, vi } from 'vitest';
import type { DrainReport, LastConnector } from '../../../src/app/drain/drain.ts';
import * as drains from '../../../src/app/drain/drain.ts';
import * as accepting from '../../../src/app/networks/accept.ts';
import * as losses from '../../../src/app/networks/option-changes.ts';
import type { PassReport } from '../../../src/app/networks/pass-report.ts';
import * as options from '../../../src/app/options/set-options.ts';
import * as rotations from '../../../src/app/rotation/rotate.ts';
import * as waiting from '../../../src/app/status/wait.ts';
import { accept } from '../../../src/cli/commands/accept.ts';
import { down } from '../../../src/cli/commands/down.ts';
import { drain } from '../../../src/cli/commands/drain.ts';
import { rotateKey } from '../../../src/cli/commands/rotate-key.ts';
import { set } from '../../../src/cli/commands/set.ts';
import { wait } from '../../../src/cli/commands/wait.ts';
import * as output from '../../../src/cli/output/output.ts';
import { Unreachable, WrongUsage } from '../../../src/core/errors/index.ts';
import type { Change } from '../../../src/core/reconcile/change.ts';
import { joinedTo, mapAt } from '../../app/joined-state.ts';
import { SimulatedHost } from '../../app/simulated-host.ts';
import { keyPair, peer } from '../../core/samples.ts';
import { runCommand } from './run-command.ts';

afterEach(() => vi.restoreAllMocks());

const check = vi.fn(async () => {});
const tools = { host: { check } };
const unreachable = new Unreachable('https://cp.example.net', 'silent', {
  delivered: false,
  heard: false,
  retryAfterMs: null,
});
const changed: Change = {
  action: 'update',
  kind: 'link',
  target: 'cpn0',
  before: 1420,
  after: 1380,
  reason: 'mtu',
} as never;
const passOf = (fields: Partial<PassReport> = {}): PassReport => ({
  ...{ interface: 'cpn0', changes: [], names: new Map(), fileDiff: [], unsynced: null, failure: null },
  ...fields,
});

describe('cpn wait', () => {
  const run = async (given: object, networks: readonly { interface: string; missing: string | null }[]) => {
    const waitFor = vi.spyOn(waiting, 'waitFor').mockResolvedValue([...networks]);
    const outcome = await runCommand(wait, { ...given }, { tools });
    return { ...outcome, asked: waitFor.mock.calls[0]?.slice(1) };
  };
  const ready = [{ interface: 'cpn0', missing: null }];
  const both = [...ready, { interface: 'cpn1', missing: 'no handshake' }];

  it('says nothing of networks that are ready, and of others what is missing, with the exit code 3', async () => {
    expect(await run({}, ready)).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    const { exitCode, stderr } = await run({ timeout: '5' }, both);
    expect([exitCode, stderr]).toEqual([3, 'not ready after 5 s: no handshake\n']);
  });

  it('ends its last step as done, or without a result', async () => {
    const ended = vi.spyOn(output, 'endStep');
    await run({ json: true }, ready);
    await run({ json: true }, both);
    expect(ended.mock.calls.filter((given) => given.length > 0)).toEqual([['done'], ['open']]);
  });

  it('has each network in JSON, ready or not', async () => {
    const { exitCode, stdout } = await run({ json: true }, both);
    const networks = [
      { interface: 'cpn0', ready: true },
      { interface: 'cpn1', ready: false, missing: 'no handshake' },
    ];
    expect([exitCode, JSON.parse(stdout)]).toEqual([3, { networks }]);
  });

  it.each<[object, unknown[]]>([
    [{}, [undefined, { for: 'address' }, 60]],
    [{ network: 'office', timeout: '0' }, ['office', { for: 'address' }, 0]],
    [{ for: 'handshake', network: 'office' }, ['office', { for: 'handshake' }, 60]],
    [{ for: 'route', network: '10.0.0.0/8' }, [undefined, { for: 'route', prefix: '10.0.0.0/8' }, 60]],
    [{ for: 'route', network: 'office', cidr: '10.0.0.0/8' }, ['office', { for: 'route', prefix: '10.0.0.0/8' }, 60]],
    // A network may be called like a route.
    [{ for: 'route', network: '1/1', cidr: 'fd00::/8' }, ['1/1', { for: 'route', prefix: 'fd00::/8' }, 60]],
  ])('with %j waits for %j', async (given, asked) => {
    expect((await run(given, ready)).asked).toEqual(asked);
  });

  it.each([
    [{ for: 'route' }, '--for route needs a CIDR; example'],
    [{ for: 'route', network: 'office' }, '--for route needs a CIDR, "office" is not one'],
    [{ for: 'route', network: 'office', cidr: 'x' }, '--for route needs a CIDR, "x" is not one'],
    [{ network: 'office', cidr: '10.0.0.0/8' }, 'only --for route takes a CIDR, not --for address'],
    [{ for: 'handshake', network: 'office', cidr: 'x' }, 'not --for handshake'],
    [{ for: 'peer' }, 'must be one of address, handshake, route'],
    [{ timeout: '86401' }, 'is not a number from 0 to 86400'],
  ])('with %j is refused', async (given, problem) => {
    const { error, asked } = await run(given, ready);
    expect([error?.message, asked]).toEqual([expect.stringContaining(problem), undefined]);
  });
});

describe('cpn set', () => {
  const loss = { interface: 'cpn0', peers: ['edge-1'], isRemoval: false };
  const run = async (given: object, report = passOf(), found: losses.SecretLosses | null = null) => {
    vi.restoreAllMocks();
    vi.spyOn(options, 'selectOne').mockResolvedValue(joinedTo(mapAt('"1"', [])));
    vi.spyOn(losses, 'findSecretLosses').mockReturnValue(found);
    const planned = vi.spyOn(options, 'planOptions').mockResolvedValue(report);
    const made = vi.spyOn(options, 'setOptions').mockResolvedValue(report);
    const outcome = await runCommand(set, { mtu: '1380', ...given }, { tools });
    return { ...outcome, planned: planned.mock.calls.length, made: made.mock.calls };
  };

  it('changes the options, and rolls back unless they are confirmed within the given time', async () => {
    const { exitCode, planned, made, stdout } = await run({ 'confirm-within': '1m', network: 'office' });
    expect([exitCode, planned, made.length]).toEqual([0, 0, 1]);
    expect(made[0]?.slice(1)).toEqual(['office', expect.objectContaining({ options: { mtu: 1380 } }), 60_000]);
    expect(stdout).toBe('cpn0 has the new options; nothing else changed\n');
    expect((await run({}, passOf({ changes: [changed] }))).exitCode).toBe(0);
  });

  it('with --dry-run changes nothing, and exits with 3 where there is something to change', async () => {
    const { exitCode, planned, made, stdout } = await run({ 'dry-run': true });
    expect([exitCode, planned, made]).toEqual([0, 1, []]);
    expect(stdout).toBe('cpn0 would not change\n');
    expect((await run({ 'dry-run': true }, passOf({ changes: [changed] }))).exitCode).toBe(3);
  });

  it('prompts before another network secret cuts peers off, and only warns of it in a dry run', async () => {
    const asked = await run({}, passOf(), loss);
    expect([asked.error, asked.made]).toEqual([expect.any(WrongUsage), []]);
    expect(asked.error?.message).toContain(
      'cpn0 loses edge-1 within 3 minutes, and SSH through the tunnel too, unless they have the same network secret by then: type "cpn set --network-secret-file PATH" there. Change it anyway?',
    );
    expect((await run({}, passOf(), { ...loss, isRemoval: true })).error?.message).toContain(
      'unless they have none either by then: type "cpn set --network-secret-file none" there.',
    );
    expect((await run({ yes: true }, passOf(), loss)).made).toHaveLength(1);
    const dry = await run({ 'dry-run': true }, passOf(), loss);
    expect([dry.error, dry.planned, dry.made]).toEqual([null, 1, []]);
    expect(dry.stderr).toContain('warning: cpn0 loses edge-1 within 3 minutes');
  });

  it.each<[object, boolean, boolean]>([
    [{}, false, false],
    [{ 'allow-route': ['10.0.0.0/8'] }, false, false],
    [{ 'allow-route': ['10.0.0.0/8', '0.0.0.0/0'] }, true, false],
    [{ map: ['10.201.1.0/24=192.168.1.0/24'] }, false, true],
  ])('with %j needs the tools of a full tunnel: %j, and of maps: %j', async (given, fullTunnel, maps) => {
    check.mockClear();
    await run(given);
    expect(check).toHaveBeenCalledExactlyOnceWith({ firewall: false, fullTunnel, maps });
  });
});

describe('cpn drain', () => {
  const reportOf = (fields: Partial<DrainReport> = {}): DrainReport => ({
    ...{ interface: 'cpn0', withdrawn: [], reasons: [], idle: true, traffic: null, state: 'up' },
    ...{ dialling: [], failure: null },
    ...fields,
  });
  const last: LastConnector = {
    ...{ interface: 'cpn0', network: 'office', dialling: [] },
    ...{ routes: ['10.0.0.0/8'], relayed: ['laptop', 'phone'] },
  } as never;
  const run = async (given: object, reports: DrainReport[], found: LastConnector[] = [], tunnelled = false) => {
    vi.restoreAllMocks();
    const host = await SimulatedHost.with(joinedTo(mapAt('"1"', [peer(2)])));
    const { store } = host.tools;
    const origin = await host.state();
    const connector = { ...origin, enrollment: { ...origin.enrollment, type: 'connector' } } as const;
    await store.write(connector);
    // Its session is in the tunnel of a network that this host does not route for.
    if (tunnelled) await store.write({ ...origin, interface: 'cpn1' });
    const links: string[] = [];
    host.tools.host.observe = async ({ link }) => {
      links.push(link);
      return host.actual;
    };
    host.sshClients = tunnelled ? [{ address: '10.77.0.2', local: '10.77.0.1' } as never] : [];
    const sought = vi.spyOn(drains, 'findLastConnectors').mockResolvedValue(found);
    const drained = vi.spyOn(drains, 'drainNetworks').mockResolvedValue(reports);
    const undone = vi.spyOn(drains, 'undoDrain').mockResolvedValue(reports);
    const outcome = await runCommand(drain, { ...given }, { tools: host.tools });
    const calls = { sought: sought.mock.calls, drained: drained.mock.calls, undone: undone.mock.calls.length };
    return { ...outcome, ...calls, links, sessionReads: host.sessionReads };
  };

  it('withdraws, and takes down only where that was asked for', async () => {
    const { exitCode, stderr, sought, drained } = await run({ network: 'office' }, [
      reportOf({ withdrawn: ['10.0.0.0/8'] as never }),
    ]);
    expect([exitCode, stderr]).toEqual([
      0,
      'cpn0 is out of service; "cpn drain cpn0 --undo" puts it back into service\n',
    ]);
    expect([sought[0]?.slice(1), drained[0]?.slice(1)]).toEqual([
      ['office', false],
      ['office', { timeout: 60, down: false }],
    ]);
    const lower = await run({ down: true, timeout: '300' }, [reportOf({ state: 'down' })]);
    expect([lower.sought[0]?.slice(1), lower.drained[0]?.slice(1)]).toEqual([
      [undefined, true],
      [undefined, { timeout: 300, down: true }],
    ]);
    expect(lower.stderr).toBe('cpn0 is out of service and down; "cpn up cpn0" brings it back\n');
  });

  it('prompts before a network loses its last connector, and never to undo it', async () => {
    const { error, drained } = await run({}, [reportOf()], [last]);
    expect([error?.message, drained]).toEqual([
      expect.stringContaining(
        'cpn0: no other connector of office serves 10.0.0.0/8, and 2 peers without an endpoint (laptop, phone) no longer reach each other. Drain anyway?',
      ),
      [],
    ]);
    expect((await run({ yes: true }, [reportOf()], [last])).drained).toHaveLength(1);
    const undo = await run({ undo: true }, [reportOf()], [last]);
    expect([undo.error, undo.sought, undo.drained, undo.undone]).toEqual([null, [], [], 1]);
  });

  it('prompts before an SSH session through a connector ends with the interface', async () => {
    const { links, sessionReads } = await run({ down: true }, [reportOf()], [], true);
    expect([links, sessionReads]).toEqual([['cpn0'], 1]);
    for (const given of [{}, { down: true, yes: true }]) {
      expect((await run(given, [reportOf()], [], true)).sessionReads).toBe(0);
    }
  });

  it('exits with 1 where there is still traffic, and with the code of a failure', async () => {
    const busy = reportOf({ interface: 'cpn1', idle: false, traffic: 'edge-2 sends 3 KiB/s' });
    const { exitCode, stderr } = await run({ timeout: '5' }, [reportOf(), busy]);
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringContaining('not idle after 5 s: edge-2 sends 3 KiB/s\ncpn1 is out of service;'),
    ]);
    const failed = reportOf({ interface: 'cpn1', idle: null, failure: unreachable });
    expect((await run({}, [reportOf(), failed])).exitCode).toBe(5);
  });

  it.each<[Partial<DrainReport>, object, string]>([
    [{ idle: null, withdrawn: [] }, {}, 'cpn0 is unchanged'],
    [{ idle: null, withdrawn: ['10.0.0.0/8'] as never }, {}, 'cpn0 is unchanged'],
    [
      { idle: true, withdrawn: ['10.0.0.0/8'] as never },
      { down: true },
      'cpn0 is out of service, but could not be taken down',
    ],
    [{ idle: null }, { undo: true }, 'cpn0 goes back into service at the next pass of the daemon or "cpn reconcile"'],
  ])('that fails with %j and %j says what is left', async (fields, given, words) => {
    const { stderr } = await run(given, [reportOf({ ...fields, failure: unreachable, dialling: ['phone'] })]);
    expect(stderr).toContain(`${words}\n`);
    expect(stderr).not.toContain('devices that dial');
  });

  it('says after --undo whether all is in service', async () => {
    expect((await run({ undo: true }, [reportOf({ dialling: ['phone'] })])).stderr).toBe('cpn0 is in service\n');
    const part = reportOf({ withdrawn: ['10.0.0.0/8'] as never, reasons: ['10.0.0.0/8 (its probes fail)'] });
    expect((await run({ undo: true }, [part])).stderr).toBe(
      'cpn0 is in service except for 10.0.0.0/8 (its probes fail)\n',
    );
  });

  it('warns of devices that have no other connector, by whether the interface is down', async () => {
    const dialling = ['phone', 'tablet'];
    expect((await run({}, [reportOf({ dialling })])).stderr).toContain(
      'devices that dial cpn0 alone (phone, tablet) still go through it, and lose the network with it',
    );
    expect((await run({ down: true }, [reportOf({ dialling, state: 'down' })])).stderr).toContain(
      'devices that dial cpn0 alone (phone, tablet) lost the network;',
    );
  });

  it('has in JSON whether each network is idle, where it waited for that', async () => {
    const reports = [reportOf({ idle: false, dialling: ['phone'] }), reportOf({ interface: 'cpn1', idle: null })];
    const { stdout } = await run({ json: true }, reports);
    expect(JSON.parse(stdout).networks).toEqual([
      { interface: 'cpn0', withdrawn: [], idle: false, state: 'up', dialling: ['phone'] },
      { interface: 'cpn1', withdrawn: [], state: 'up' },
    ]);
  });

  it('is refused with --undo and --down, and for a time that is too short', async () => {
    for (const given of [{ undo: true, down: true }, { timeout: '4' }]) {
      const { error, drained, undone } = await run(given, []);
      expect([error, drained, undone]).toEqual([expect.any(Error), [], 0]);
    }
  });
});

describe('cpn rotate-key', () => {
  const report = { interface: 'cpn0', state: null, answered: null, failure: null };
  const run = async (given: object, reports: rotations.RotationReport[], held: rotations.HeldKey[] = []) => {
    vi.restoreAllMocks();
    vi.spyOn(rotations, 'findHeldKeys').mockResolvedValue(held);
    const made = vi.spyOn(rotations, 'rotateKeys').mockResolvedValue(reports);
    const outcome = await runCommand(rotateKey, { ...given }, { tools });
    return { ...outcome, made: made.mock.calls };
  };

  it('exits with the code of the first failure, after all networks', async () => {
    const state = joinedTo(mapAt('"1"', []));
    const failed = { ...report, interface: 'cpn1', failure: unreachable };
    const { exitCode, stderr } = await run({}, [failed, { ...report, state, answered: 'edge-1' }]);
    expect([exitCode, stderr]).toEqual([
      5,
      expect.stringContaining('cpn0 has a new key; edge-1 completed the first handshake'),
    ]);
    const { stdout } = await run({ json: true }, [
      { ...failed, state },
      { ...report, state },
    ]);
    expect(JSON.parse(stdout).networks).toEqual([
      expect.objectContaining({ interface: 'cpn1', rotated: false, public_key: keyPair(1).publicKey }),
      expect.objectContaining({ interface: 'cpn0', rotated: true, answered: null }),
    ]);
    expect((await run({}, [{ ...report, state }])).stderr).toContain('no connected peer could confirm it');
  });

  it('prompts before devices lose a connector, and passes on which ones were confirmed', async () => {
    const held = [{ interface: 'cpn0', dialling: ['phone'] }];
    const { error, made } = await run({}, [], held);
    expect([error?.message, made]).toEqual([
      expect.stringContaining('devices that dial this connector alone (phone)'),
      [],
    ]);
    const confirmed = await run({ yes: true, 'confirm-within': '30s', network: 'office' }, [report], held);
    expect(confirmed.made[0]?.slice(1)).toEqual(['office', 30_000, held]);
  });
});

describe('cpn accept', () => {
  const pin = { publicKey: 'old', address: '10.77.0.2', peer: 2, identity: null };
  const mismatch = { pin, claimed: { ...pin, publicKey: 'new' } };
  const found = { interface: 'cpn0', id: 2, name: 'edge-1', addresses: ['10.77.0.2'], mismatch };
  const run = async (given: object, reports: PassReport[], peerFound: object = found) => {
    vi.restoreAllMocks();
    vi.spyOn(accepting, 'findPeer').mockResolvedValue(peerFound as never);
    const made = vi.spyOn(accepting, 'acceptPeer').mockResolvedValue(reports);
    const outcome = await runCommand(accept, { peer: 'edge-1', ...given }, { tools });
    return { ...outcome, made: made.mock.calls };
  };

  it('shows both values, prompts, and accepts exactly the mismatch that it showed', async () => {
    const { error, stderr, made } = await run({}, []);
    expect([error?.message, made]).toEqual([
      expect.stringContaining('Accept the new key and address of edge-1 in cpn0?'),
      [],
    ]);
    expect(stderr).toMatch(/pinned +old +10\.77\.0\.2 +2 +-\nclaimed +new +10\.77\.0\.2/);
    const done = await run({ yes: true, json: true }, [passOf({ changes: [changed] })]);
    expect([done.exitCode, done.made[0]?.[1]]).toEqual([0, found]);
    expect(JSON.parse(done.stdout)).toMatchObject({ accepted: true, public_key: 'new', changes: [{ kind: 'link' }] });
  });

  it('exits with the code of a pass that failed, and warns of one without the newest map', async () => {
    expect((await run({ yes: true }, [passOf({ failure: unreachable })])).exitCode).toBe(5);
    const { exitCode, stderr } = await run({ yes: true }, [passOf({ unsynced: unreachable })]);
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('cpn0 uses the stored map:')]);
  });

  it('changes nothing where the peer matches its pin', async () => {
    const { exitCode, stderr, stdout, made } = await run({ json: true }, [], { ...found, mismatch: null });
    expect([exitCode, made, JSON.parse(stdout).accepted]).toEqual([0, [], false]);
    expect(stderr).toContain('nothing to accept: edge-1 matches its pin in cpn0');
  });
});

describe('cpn down', () => {
  const prepare = async () => {
    const host = await SimulatedHost.with(joinedTo(mapAt('"1"', [peer(2)])));
    host.sshClients = [{ address: '10.77.0.2', local: '10.77.0.1' } as never];
    host.actual = { ...host.actual, unread: 'a tool fails' } as never;
    return host;
  };

  it('prompts before an SSH session through the tunnel ends, and only then', async () => {
    const host = await prepare();
    const { error } = await runCommand(down, {}, { tools: host.tools });
    expect(error?.message).toContain(
      'Take cpn0 down? The SSH session from 10.77.0.2 goes through the tunnel, and ends.',
    );
    expect((await host.state()).enabled).toBe(true);
    host.sshClients = [];
    const { exitCode, stdout } = await runCommand(down, { json: true }, { tools: host.tools });
    expect([exitCode, JSON.parse(stdout)]).toEqual([0, { networks: [{ interface: 'cpn0', state: 'down' }] }]);
    expect((await host.state()).enabled).toBe(false);
  });

  it('takes down the interface that was confirmed, although the network has another name by then', async () => {
    const host = await prepare();
    const { store } = host.tools;
    const state = await host.state();
    const { name } = state.membership.map;
    const read = host.tools.host.sshClients;
    // A second network gets the name while the first one is confirmed.
    host.tools.host.sshClients = async () => {
      const membership = { ...state.membership, map: { ...state.membership.map, name: 'other' } };
      await store.write({ ...state, membership });
      await store.write({ ...state, interface: 'cpn1' });
      return (await read()).slice(0, 0);
    };
    const { exitCode } = await runCommand(down, { network: name }, { tools: host.tools });
    expect(exitCode).toBe(0);
    expect([(await host.state()).enabled, (await store.read('cpn1'))?.enabled]).toEqual([false, true]);
  });

  it('with --yes does not look for sessions', async () => {
    const host = await prepare();
    expect((await runCommand(down, { yes: true }, { tools: host.tools })).exitCode).toBe(0);
    expect(host.sessionReads).toBe(0);
  });
});
