import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import type { InboundDrop } from '../../../src/core/forward/foreign/find-inbound-drop.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import type { Notes } from '../../../src/store/store.ts';
import { dialled, options, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { one, serving } from '../serving.ts';
import { SimulatedHost } from '../simulated-host.ts';

const own = peer(1, { endpoint: dialled(1) });
const map = { ...mapAt('"1"', [], { routes: [] }), peers: [own, peer(2, { endpoint: dialled(2) })] };
const inbound: InboundDrop = {
  ...{ port: 51_820, family: 'ip', table: 'foreign', reason: 'policy drop of chain input', rejects: false },
  ...{ author: null, command: null },
};

/** A host that is up, with these notes. It counts how often the packet rules of others are read. */
async function start(state: Joined, notes: Partial<Notes> = {}) {
  const simulated = await SimulatedHost.with(state);
  const { tools } = simulated;
  await passNetwork(tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  await tools.store.amendNotes('cpn0', notes);
  let reads = 0;
  const { foreignDrops } = tools.host;
  tools.host.foreignDrops = async (link, paths) => {
    reads += 1;
    return foreignDrops(link, paths);
  };
  const status = async () => (await readStatus(tools))[0] ?? expect.unreachable('there is a network');
  return { simulated, tools, status, reads: () => reads };
}

describe('the status of a network', () => {
  it('is there for a state that cannot be read, by the order of the interfaces', async () => {
    const { tools } = await start(joinedTo(map));
    for (const link of ['aaa0', 'zzz0'])
      await writeFile(join(dirname(tools.store.formerPath), `${link}.json`), '{', { mode: 0o600 });
    const all = await readStatus(tools);
    expect(all.map(({ interface: link, state, failure }) => [link, state, failure?.name ?? null])).toEqual([
      ['aaa0', 'degraded', 'UnreadableFile'],
      ['cpn0', 'up', null],
      ['zzz0', 'degraded', 'UnreadableFile'],
    ]);
    expect(all[0]?.problems).toMatchObject([{ code: 'state-unreadable' }]);
  });

  it('keeps what the daemon noted where the host cannot be observed', async () => {
    const probes = [{ host: '192.168.50.1', port: null }];
    const notes = { dead: [one], troubles: ['a route was restored five times'] };
    const { tools, status } = await start(serving({ options: { ...options, probes } }), notes);
    const failure = new CommandFailed('ip link show cpn0', 1, 'no');
    tools.host.observe = () => Promise.reject(failure);
    const found = await status();
    expect(found).toMatchObject({ state: 'degraded', failure, network: { name: 'office' }, address: '10.77.0.1' });
    expect(found.problems.map(({ code }) => code)).toEqual(['state-unreadable', 'lan-silent', 'repair-postponed']);
    expect(found.warnings).toHaveLength(2);
  });

  it('has how other hosts reach this one only while the tunnel is up, and reads no packet rules for one that is down', async () => {
    const reachability = { reachableBy: 1, witnesses: 2 };
    const { simulated, tools, status, reads } = await start(serving(), { reachability });
    expect((await status()).reachability).toEqual(reachability);
    const before = reads();
    await tools.store.write({ ...(await simulated.state()), enabled: false });
    expect(await status()).toMatchObject({ state: 'down', reachability: null, inbound: null });
    expect([before, reads()]).toEqual([1, 1]);
  });

  it.each([
    [true, 1, 'degraded'],
    [false, 0, 'up'],
  ])(
    'reads packet rules for a host that forwards nothing only after a drop: %s',
    async (inboundDropped, count, state) => {
      const { simulated, status, reads } = await start(joinedTo(map), { inboundDropped });
      simulated.drops = { forward: [], inbound };
      const found = await status();
      expect([reads(), found.state, found.inbound]).toEqual([count, state, inboundDropped ? inbound : null]);
      expect(found.problems.map(({ code }) => code)).toEqual(inboundDropped ? ['packets-dropped'] : []);
      expect(found.warnings).toHaveLength(count);
    },
  );

  it('is degraded where these rules cannot be read, and hides nothing else', async () => {
    const { simulated, tools, status } = await start(serving({ drained: true }));
    tools.host.foreignDrops = () => Promise.reject(new CommandFailed('nft list ruleset', 1, 'no'));
    const found = await status();
    expect(found.problems.map(({ code }) => code)).toEqual(expect.arrayContaining(['drained', 'rules-unread']));
    expect([found.failure, simulated.actual.link?.name]).toEqual([null, 'cpn0']);
  });

  it('has the end of the map only for a connector', async () => {
    const confirmed = 1_700_000_900_000;
    const limited = { ...serving({ confirmed }).membership.map, maxAge: 3600 };
    for (const [state, end] of [
      [serving({ confirmed }), new Date(confirmed + 3_600_000).toISOString()],
      [joinedTo(limited, { confirmed }), null],
    ] as const) {
      const { membership } = state;
      const { status } = await start({ ...state, membership: { ...membership, map: limited } });
      expect((await status()).mapEnd).toBe(end);
    }
  });

  it('is local without access to the control plane', async () => {
    const state = joinedTo(map);
    const { status } = await start({ ...state, membership: { ...state.membership, accessToken: null } });
    expect((await status()).sync.mode).toBe('local');
    expect((await (await start(state)).status()).sync.mode).toBe('poll');
  });

  it('of a network that is down is read at once, whatever is left of it on the host', async () => {
    const { simulated, tools, status } = await start(joinedTo(map));
    await tools.store.write({ ...(await simulated.state()), enabled: false });
    await tools.store.writeConfig('cpn0', 'of another program\n');
    tools.store.isLocked = () => Promise.reject(new Error('unexpected call'));
    expect(await status()).toMatchObject({ state: 'down', drift: [] });
  });
});
