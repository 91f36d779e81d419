import { afterEach, describe, expect, it, vi } from 'vitest';
import * as dialling from '../../../src/app/lan/dialling-devices.ts';
import * as leaving from '../../../src/app/leave/leave.ts';
import * as formerNetworks from '../../../src/app/networks/former-networks.ts';
import { leave } from '../../../src/cli/commands/leave.ts';
import * as daemonUnit from '../../../src/cli/daemon/daemon-unit.ts';
import * as confirming from '../../../src/cli/input/confirm.ts';
import { UnreadableFile, WrongUsage } from '../../../src/core/errors/index.ts';
import type { FormerMembership } from '../../../src/store/former-networks.ts';
import { joinedTo, mapAt } from '../../app/joined-state.ts';
import { SimulatedHost } from '../../app/simulated-host.ts';
import { peer } from '../../core/samples.ts';
import { runCommand } from './run-command.ts';

afterEach(() => vi.restoreAllMocks());

const state = joinedTo(mapAt('"1"', [peer(2)]));
const membership = { ...state.membership, map: { ...state.membership.map, id: 8, name: 'lab' } };
const other = { ...state, interface: 'cpn1', membership };

const former = (link: string, leftAt: string): FormerMembership =>
  ({
    ...{ interface: link, leftAt, service: state.service, publicKey: 'x', accessToken: null },
    network: { id: 7, name: `network of ${link}` },
    peer: { id: 1, name: 'web' },
  }) as never;

interface Scene {
  readonly states?: (typeof state)[];
  readonly isCloned?: boolean;
  /** The unreadable networks. */
  readonly unread?: string[];
  readonly confirms?: boolean;
  /** The networks that were left before, and those that are left afterwards. */
  readonly before?: FormerMembership[];
  readonly after?: FormerMembership[];
}

/** Leaves networks as the use cases of the scene do it, and returns what was asked of them. */
async function run(given: object, scene: Scene = {}) {
  const { states = [state], isCloned = false, unread = [], confirms = true, before = [], after = [] } = scene;
  vi.restoreAllMocks();
  const host = await SimulatedHost.with(state);
  if (isCloned) {
    const { sync } = await host.tools.store.readNotes('cpn0');
    await host.tools.store.amendNotes('cpn0', { sync: { ...sync, clonedSince: '2030-01-01T00:00:00.000Z' } });
  }
  const unreadable = unread.map((link) => ({ interface: link, error: new UnreadableFile(link, 'is damaged', 'x') }));
  vi.spyOn(leaving, 'selectLeaving').mockResolvedValue({ states, unreadable });
  const left = vi
    .spyOn(leaving, 'leaveNetworks')
    .mockImplementation(async (_, links = []) =>
      links.map((link) => ({ interface: link, removed: true, former: link === 'cpn1' })),
    );
  const verified = vi.spyOn(leaving, 'verifyLeft').mockImplementation(async (_, link) => [`interface ${link}`, 'rule']);
  vi.spyOn(formerNetworks, 'listFormer').mockResolvedValueOnce(before).mockResolvedValue(after);
  const finished = vi.spyOn(formerNetworks, 'finishLeaving').mockResolvedValue();
  const disabled = vi.spyOn(daemonUnit, 'disableIdleDaemon').mockResolvedValue();
  vi.spyOn(dialling, 'findDiallingDevices').mockImplementation(async (_, { interface: link }) =>
    link === 'cpn0' ? ['phone'] : [],
  );
  const asked = vi.spyOn(confirming, 'confirmByName').mockResolvedValue(confirms);
  const outcome = await runCommand(leave, { ...given }, { tools: host.tools });
  return {
    ...outcome,
    ...{ left: left.mock.calls.map(([, ...rest]) => rest), verified: verified.mock.calls.map(([, link]) => link) },
    ...{ finished: finished.mock.calls.map(([, some]) => some), disabled: disabled.mock.calls.length },
    asked: asked.mock.calls.map(([question, names]) => [question, names]),
  };
}

describe('cpn leave', () => {
  it('prompts for a name of the network, says what is lost, and then leaves it', async () => {
    const { exitCode, asked, left, stderr, disabled } = await run({});
    expect(asked).toEqual([
      [
        'Leave cpn0 ("office", id 7, https://203.0.113.99)? The key pair is lost. Devices that dial cpn0 alone (phone) lose the network.',
        ['office', 'cpn0', '7'],
      ],
    ]);
    expect([exitCode, left, disabled]).toEqual([0, [[['cpn0'], false]], 1]);
    expect(stderr).toContain('left cpn0; removed everything cpn created for it\n');
  });

  it('of several networks, or of none that can be read, prompts for another word than a name', async () => {
    const { asked, left, stderr } = await run({ all: true }, { states: [state, other], unread: ['cpn2'] });
    expect(asked[0]?.[1]).toEqual(['all']);
    // One that cannot be read is reported after the others.
    expect(left).toEqual([[['cpn0', 'cpn1', 'cpn2'], false]]);
    expect(stderr).toMatch(/left cpn1; removed everything cpn created for it, except its identity and token in /);
  });

  it('that is not confirmed changes nothing', async () => {
    const { exitCode, left, finished, disabled } = await run({}, { confirms: false, before: [former('cpn7', '1')] });
    expect([exitCode, left, finished, disabled]).toEqual([1, [], [], 0]);
  });

  it('is refused for the original of a clone, unless its peer stays or --yes takes it out for both', async () => {
    const refused = await run({}, { isCloned: true });
    expect([refused.error, refused.left]).toEqual([expect.any(WrongUsage), []]);
    expect(refused.error?.message).toContain('another host uses the identity of cpn0');
    expect((await run({ yes: true }, { isCloned: true })).left).toHaveLength(1);
    const kept = await run({ 'keep-peer': true }, { isCloned: true });
    expect(kept.left).toEqual([[['cpn0'], true]]);
    expect(kept.asked[0]?.[0]).toContain('The peer stays in the network.');
    expect(kept.stderr).toContain('peer 1 stays in network office; "cpn peer remove 7 1" removes it');
  });

  it('verifies each network where that is asked for, and says what is absent', async () => {
    const scene = { states: [state, other] };
    const { verified, stderr } = await run({ all: true, verify: true }, scene);
    expect(verified).toEqual(['cpn0', 'cpn1']);
    expect(stderr).toContain('verified: no interface cpn0, no rule, no interface cpn1 is left\n');
    expect((await run({ all: true }, scene)).verified).toEqual([]);
    const { stdout } = await run({ all: true, verify: true, json: true }, scene);
    expect(JSON.parse(stdout).verified).toEqual(['interface cpn0', 'rule', 'interface cpn1', 'rule']);
  });

  it('finishes leaving the networks that were left before, and warns of those that still list this host', async () => {
    const [earlier, recent] = [former('cpn7', '1'), former('cpn0', '2')];
    const { finished, stderr, stdout } = await run({ json: true }, { before: [earlier], after: [recent, earlier] });
    expect(finished).toEqual([[earlier]]);
    // leaveNetworks warned of the recent one.
    expect(stderr.match(/warning:/g)).toHaveLength(1);
    expect(stderr).toContain('network of cpn7');
    expect(JSON.parse(stdout).former).toHaveLength(2);
  });

  it('of a network that was left before needs no confirmation, and leaves the daemon as it is', async () => {
    const earlier = former('cpn7', '1');
    const { exitCode, asked, disabled, finished } = await run({ network: 'cpn7' }, { states: [], before: [earlier] });
    expect([exitCode, asked, disabled, finished]).toEqual([0, [], 0, [[earlier]]]);
    expect((await run({}, { states: [] })).stderr).toContain('no network is joined');
  });
});
