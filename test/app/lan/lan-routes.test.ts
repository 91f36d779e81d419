import { describe, expect, it } from 'vitest';
import { checkInbound } from '../../../src/app/lan/foreign-drops.ts';
import { checkLanRoutes, findUnreachableLans, updateLanRoutes } from '../../../src/app/lan/lan-routes.ts';
import { withdrawnBy } from '../../../src/app/lan/withdraw.ts';
import { findLanProblems } from '../../../src/app/problems/find-problems.ts';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import type { ForeignDrops } from '../../../src/core/forward/foreign/foreign-drops.ts';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import type { Prefix } from '../../../src/core/net/cidr.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import type { Notes } from '../../../src/store/store.ts';
import { address, bare, dialled, options, underlay } from '../../core/samples.ts';
import { joinedTo } from '../joined-state.ts';
import { mapWithout, one, range, serving, two } from '../serving.ts';
import { SimulatedHost } from '../simulated-host.ts';

const reached = [one, two].map((prefix, at) => ({ prefix, link: `eth${at + 1}` }));
const here = address('203.0.113.22');

/** A connector whose network has these routes out of service here. */
function connector(withdrawn: readonly Prefix[], changes: Partial<Joined> = {}): Joined {
  const state = joinedTo(mapWithout(withdrawn), changes);
  return { ...state, enrollment: { ...state.enrollment, type: 'connector' } };
}

async function start(state: Joined, around: Partial<Underlay> = {}, notes: Partial<Notes> = {}) {
  const simulated = await SimulatedHost.with(state);
  simulated.sourceAddressTo = () => here;
  simulated.actual = { ...bare, underlay: { ...underlay, reached, ...around } };
  await simulated.tools.store.amendNotes('cpn0', notes);
  const look = async (dropped = new Map<Prefix, string>()) =>
    updateLanRoutes(simulated.tools, await evaluateNetwork(simulated.tools, state), {
      ...{ dropped, settling: 5, since: new Map() },
    });
  const gone = async () =>
    findUnreachableLans((await simulated.tools.store.readNotes('cpn0')).ways).map(({ route }) => route);
  return { simulated, look, gone };
}

const probes = [{ host: '192.168.50.1', port: null }];
const first: readonly (readonly [string, Joined, Partial<Notes>, readonly Prefix[]])[] = [
  ['those out of service', connector([one]), {}, [one]],
  ['all of them', connector([one, two]), {}, [one, two]],
  ['none of a drained host', connector([one], { drained: true }), {}, []],
  ['none where packet rules do not load', connector([one]), { unloaded: 'nft failed' }, []],
  ['none where relaying is out of service too', connector([range, one]), {}, []],
  ['none where probes decide', connector([one], { options: { ...options, probes } }), {}, []],
  ['none that is dead by probes', connector([one, two]), { dead: [one] }, [two]],
  ['none where all is in service', connector([]), {}, []],
];

it.each(first)('after a reboot a connector takes for lost: %s', async (_, state, notes, lost) => {
  const { look } = await start(state, {}, notes);
  const { before } = await look();
  expect(findUnreachableLans(before).map(({ route }) => route)).toEqual(lost);
});

/** An underlay without a way to a LAN. */
const without = { reached: [], uplinks: [] };
const uplink = (name: string, isDown: boolean) => ({ name, kind: 'other', isDown }) as Underlay['links'][number];
const online: readonly (readonly [string, Partial<Underlay>, (to: string) => boolean, boolean])[] = [
  ['it has a way to the control plane', without, () => true, true],
  ['it has none', without, () => false, false],
  ['one of its uplinks is down', { reached: [], uplinks: [], links: [uplink('eth0', true)] }, () => true, true],
];

it.each(online)('a path that is gone counts or not where %s', async (_, around, has, counts) => {
  const { simulated, look, gone } = await start(serving());
  await look();
  simulated.sourceAddressTo = (to) => (has(to) ? here : null);
  simulated.actual = { ...simulated.actual, underlay: { ...underlay, ...around } };
  await look();
  expect(await gone()).toEqual(counts ? [one, two] : []);
});

it.each([
  [[false, false], true],
  [[true, false], true],
  [[true, true], false],
])('a path that is gone counts while one of the uplinks is not down: %j', async (downs, counts) => {
  const { simulated, look, gone } = await start(serving());
  await look();
  const uplinks = ['wan0', 'wan1'];
  const links = uplinks.map((name, at) => uplink(name, downs[at] ?? false));
  const route = { prefix: one, link: 'eth1' };
  // The default route is no way to a LAN that had one of its own.
  simulated.actual = { ...simulated.actual, underlay: { ...underlay, reached: [route], uplinks, links } };
  await look();
  expect(await gone()).toEqual(counts ? [two] : []);
});

it('a name of the control plane with two addresses is reached where one of them is', async () => {
  const named = { ...serving(), service: { url: 'https://cp.example.net', insecureHttp: false } };
  const resolved = { 'cp.example.net': [address('203.0.113.9'), address('2001:db8::9')] };
  for (const [reaches, counts] of [
    ['203.0.113.9', true],
    ['2001:db8::9', true],
    ['none', false],
  ] as const) {
    const { simulated, look, gone } = await start({ ...named, resolved });
    simulated.dnsRecords = resolved;
    await look();
    simulated.sourceAddressTo = (to) => (to === reaches ? here : null);
    simulated.actual = { ...simulated.actual, underlay: { ...underlay, ...without } };
    await look();
    expect([reaches, await gone()]).toEqual([reaches, counts ? [one, two] : []]);
  }
});

it('a route that a map rules out is left to another connector, and kept without one', async () => {
  const maps = [{ route: two, local: one }];
  const state = serving({ options: { ...options, maps } });
  const { map } = state.membership;
  const other = { ...(map.peers[1] as Peer), type: 'connector' as const, routes: [one, two] };
  const shared = {
    ...state,
    membership: { ...state.membership, map: { ...map, peers: [map.peers[0] as Peer, other] } },
  };
  const alone = await start(state);
  await alone.look();
  expect(await alone.gone()).toEqual([]);
  const { look, simulated } = await start(shared);
  await look();
  expect(findUnreachableLans((await simulated.tools.store.readNotes('cpn0')).ways)).toEqual([
    { route: one, why: `overlaps ${one}, which this host serves as ${two}` },
  ]);
});

it('relaying that another program closes is left to another connector, is no LAN in the status, and returns', async () => {
  const closed = new Map<Prefix, string>([[range, 'nft table ip filter drops it']]);
  const { map } = serving().membership;
  const [self, other] = map.peers as [Peer, Peer];
  const peers = [self, { ...other, type: 'connector' as const, endpoint: dialled(2) }];
  const state = serving({ membership: { ...serving().membership, map: { ...map, peers, relay: self.id } } });
  const { look, simulated } = await start(state);
  const seen = async () => {
    const notes = await simulated.tools.store.readNotes('cpn0');
    return [withdrawnBy(state, notes), findLanProblems(state, notes)];
  };
  await look(closed);
  expect(await seen()).toEqual([[range], []]);
  await look();
  expect(await seen()).toEqual([[], []]);
  const alone = await start(serving());
  await alone.look(closed);
  expect(await alone.gone()).toEqual([]);
});

it('a platform that does not report its routes loses none, nor does a host that serves none', async () => {
  for (const state of [serving(), serving({}, 'origin')]) {
    const { simulated, look, gone } = await start(state);
    const { reached: _, ...unreported } = underlay;
    if (state.enrollment.type === 'connector') simulated.actual = { ...bare, underlay: unreported };
    else simulated.actual = { ...bare, underlay: { ...underlay, ...without } };
    const { lanRoutes } = await look();
    expect([lanRoutes, await gone()]).toEqual([{}, []]);
  }
});

describe('packet rules of other programs', () => {
  const failure = new CommandFailed('nft list ruleset', 1, 'no');

  it('that cannot be read withdraw nothing, and a bug is thrown', async () => {
    const { simulated, gone } = await start(serving());
    const evaluation = await evaluateNetwork(simulated.tools, serving());
    const failWith = (error: Error) => ({
      ...simulated.tools,
      host: { ...simulated.tools.host, foreignDrops: () => Promise.reject(error) },
    });
    await checkLanRoutes(failWith(failure), evaluation);
    expect(await gone()).toEqual([]);
    await expect(checkLanRoutes(failWith(new TypeError('a bug')), evaluation)).rejects.toThrow('a bug');
  });

  it('that drop packets to the listen port are noted, with a warning, until they do no longer', async () => {
    const { simulated } = await start(serving());
    const { tools } = simulated;
    const evaluation = await evaluateNetwork(tools, serving());
    const warnings: string[] = [];
    const look = async (inbound: ForeignDrops['inbound'] | Error) => {
      const foreignDrops = async () => {
        if (inbound instanceof Error) throw inbound;
        return { forward: [], inbound };
      };
      const host = { ...tools.host, foreignDrops };
      await checkInbound({ ...tools, host, warn: (text) => void warnings.push(text) }, evaluation);
      return (await tools.store.readNotes('cpn0')).inboundDropped;
    };
    const drop = { rule: null, port: 51_820, table: 'inet filter', chain: 'input' } as unknown as NonNullable<
      ForeignDrops['inbound']
    >;
    expect([await look(drop), warnings.length]).toEqual([true, 1]);
    // What cannot be read is not known to be over.
    expect([await look(failure), warnings.length]).toEqual([true, 1]);
    expect([await look(null), warnings.length]).toEqual([false, 1]);
    await expect(look(new TypeError('a bug'))).rejects.toThrow('a bug');
  });
});
