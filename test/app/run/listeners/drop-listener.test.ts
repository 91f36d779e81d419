import { describe, expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { DropListener } from '../../../../src/app/run/listeners/drop-listener.ts';
import { readStatus } from '../../../../src/app/status/status.ts';
import { CommandFailed } from '../../../../src/core/errors/index.ts';
import type { ForwardDrop } from '../../../../src/core/forward/foreign/find-drops.ts';
import type { InboundDrop } from '../../../../src/core/forward/foreign/find-inbound-drop.ts';
import type { ForeignDrops } from '../../../../src/core/forward/foreign/foreign-drops.ts';
import { type ForwardPath, forwardPaths } from '../../../../src/core/forward/foreign/path.ts';
import type { Peer } from '../../../../src/core/map/model.ts';
import { type Endpoint, parseEndpoint } from '../../../../src/core/net/endpoint.ts';
import { added } from '../../../../src/core/reconcile/change.ts';
import { network, options, peer, prefix } from '../../../core/samples.ts';
import { joinedTo } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const rulesChanged = { kind: 'firewall', link: null, removed: false } as const;

const enrollment = { idempotencyKey: 'x', tokenHash: 'y', name: 'peer-1', type: 'connector', endpoint: null } as const;
const path: ForwardPath = {
  iif: 'cpn0',
  oif: null,
  from: prefix('10.77.0.0/24'),
  to: prefix('192.168.50.0/24'),
  state: 'new',
};
const by = (table: string): ForwardDrop => ({
  family: 'ip',
  table,
  chain: 'forward',
  reason: 'policy drop of chain forward',
  author: null,
  remedy: 'let cpn0 through there',
  paths: [path],
  some: [],
});
const forward = (...drops: readonly ForwardDrop[]): ForeignDrops => ({ forward: drops, inbound: null });
const words = (table: string) =>
  `packets to 192.168.50.0/24 do not get through nft table ip ${table} (policy drop of chain forward)`;

/** A connector, or another host, with a listener that checks every 30 s; `look` returns what it logged. */
async function watchOver(type: 'connector' | 'origin' = 'connector', endpoint: Endpoint | null = null) {
  const map = network([peer(1, { type, endpoint })], { routes: [prefix('192.168.50.0/24')] });
  const simulated = await SimulatedHost.with(joinedTo(map, { enrollment: { ...enrollment, type, endpoint } }));
  const triggers: number[] = [];
  const watch = new DropListener(simulated.tools, 'cpn0', 30, (inMs) => void triggers.push(inMs));
  const look = async () => {
    const before = simulated.logged.length;
    await watch.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
    return simulated.logged.slice(before).map(({ level, message }) => `${level}: ${message}`);
  };
  return { simulated, watch, look, triggers };
}

const begins = 'warn: packet rules of another program drop packets';
const ends = 'info: over: packet rules of another program drop packets';

describe('a drop of forwarded packets by another program', () => {
  it('is logged when it begins, changes and ends', async () => {
    const { simulated, watch, look } = await watchOver();
    expect(await look()).toEqual([]);
    watch.onEvent(rulesChanged);
    simulated.drops = forward(by('a'));
    expect(await look()).toEqual([begins]);
    expect(simulated.logged.at(-1)?.facts).toMatchObject({
      code: 'packets-dropped',
      interface: 'cpn0',
      drop: words('a'),
    });
    watch.onEvent(rulesChanged);
    expect(await look()).toEqual([]);
    simulated.drops = forward(by('a'), by('b'));
    watch.onEvent(rulesChanged);
    expect(await look()).toEqual([begins]);
    await watch.onPass(passOf(null));
    expect(simulated.logged.slice(-2).map(({ level, message }) => `${level}: ${message}`)).toEqual([ends, ends]);
  });

  it('is checked once an interval, unless something changed', async () => {
    const { simulated, watch, look } = await watchOver();
    await look();
    simulated.drops = forward(by('a'));
    simulated.seconds += 20;
    expect(await look()).toEqual([]);
    simulated.seconds += 5;
    expect(await look()).toEqual([begins]);
    simulated.drops = forward();
    expect(await look()).toEqual([]);
    watch.onEvent(rulesChanged);
    expect(await look()).toEqual([ends]);
  });

  it('counts for its route once it lasts for 5 s, until it ends', async () => {
    const { simulated, watch, look, triggers } = await watchOver();
    const { map } = (await simulated.state()).membership;
    const paths = forwardPaths({
      link: 'cpn0',
      map,
      self: map.peers[0] as Peer,
      options,
      underlay: simulated.actual.underlay,
    });
    const [route] = map.routes;
    simulated.drops = forward({ ...by('a'), paths: paths.filter(({ state }) => state === 'new') });
    await look();
    expect([[...watch.routes.keys()], triggers]).toEqual([[], [5000]]);
    simulated.seconds += 5;
    await look();
    expect([...watch.routes]).toEqual([
      [route, 'nft table ip a drops what this host forwards there: policy drop of chain forward'],
    ]);
    // Docker that starts again drops all for a moment.
    simulated.drops = forward();
    watch.onEvent(rulesChanged);
    await look();
    simulated.drops = forward({ ...by('a'), paths });
    watch.onEvent(rulesChanged);
    await look();
    expect([...watch.routes.keys()]).toEqual([]);
  });

  it('does not matter on a host that forwards nothing', async () => {
    const { simulated, look } = await watchOver('origin');
    simulated.drops = forward(by('a'));
    expect(await look()).toEqual([]);
  });

  it('is unknown when the rules cannot be read, which is logged once and hides nothing else', async () => {
    const { simulated, watch, look } = await watchOver();
    simulated.drops = forward(by('a'));
    await look();
    const { foreignDrops } = simulated.tools.host;
    simulated.tools.host.foreignDrops = async () => {
      throw new CommandFailed('nft', 1, 'no');
    };
    watch.onEvent(rulesChanged);
    expect(await look()).toEqual(['warn: packet rules of other programs cannot be read']);
    watch.onEvent(rulesChanged);
    expect(await look()).toEqual([]);
    simulated.tools.host.foreignDrops = foreignDrops;
    watch.onEvent(rulesChanged);
    expect(await look()).toEqual(['info: over: packet rules of other programs cannot be read']);
  });
});

describe('the status of a connector', () => {
  it('is degraded while another program drops what it forwards, with a warning', async () => {
    const { simulated } = await watchOver();
    const { steps } = await evaluateNetwork(simulated.tools, await simulated.state());
    for (const step of steps) await simulated.tools.host.apply(step);
    const before = (await readStatus(simulated.tools))[0];
    simulated.drops = forward(by('a'));
    const [after] = await readStatus(simulated.tools);
    expect(after).toMatchObject({
      state: 'degraded',
      warnings: [...(before?.warnings ?? []), `${words('a')}; let cpn0 through there`],
    });
    simulated.tools.host.foreignDrops = async () => {
      throw new CommandFailed('nft', 1, 'no');
    };
    expect((await readStatus(simulated.tools))[0]?.warnings.at(-1)).toMatch(/^whether packets .* is unknown: /);
  });
});

describe('a drop of UDP to the listen port by rules of other programs', () => {
  const inbound: InboundDrop = {
    ...{ port: 51820, family: 'ip', table: 'filter', reason: 'policy drop of chain INPUT', rejects: false },
    ...{ author: 'ufw', command: 'ufw allow 51820/udp' },
  };
  const [starts, stops] = [begins, ends];

  /** An origin that others dial, or one that they do not, with its tunnel up. */
  async function dialled(endpoint: typeof dialledAt | null) {
    const { simulated, watch, look } = await watchOver('origin', endpoint);
    simulated.actual = { ...simulated.actual, underlay: { ...simulated.actual.underlay, uplinks: ['eth0'] } };
    const { steps } = await evaluateNetwork(simulated.tools, await simulated.state());
    for (const step of steps) await simulated.tools.host.apply(step);
    let looks = 0;
    simulated.tools.host.foreignDrops = async () => {
      looks += 1;
      return simulated.drops;
    };
    return { simulated, watch, look, looks: () => looks };
  }
  const dialledAt = parseEndpoint('203.0.113.1:51820');

  it('is logged when it begins and ends; without one, checks are rare', async () => {
    const { simulated, watch, look, looks } = await dialled(dialledAt);
    expect(await look()).toEqual([]);
    simulated.drops = { forward: [], inbound };
    simulated.seconds += 30;
    expect(await look()).toEqual([]);
    expect(looks()).toBe(1);
    simulated.seconds += 270;
    expect(await look()).toEqual([starts]);
    simulated.drops = forward();
    simulated.seconds += 30;
    expect(await look()).toEqual([stops]);
    watch.onEvent(rulesChanged);
    simulated.drops = { forward: [], inbound };
    expect(await look()).toEqual([starts]);
  });

  it('is checked again at the next interval where the rules could not be read', async () => {
    const { simulated, look } = await dialled(dialledAt);
    let checks = 0;
    simulated.tools.host.foreignDrops = async () => {
      checks += 1;
      if (checks === 1) throw new CommandFailed('nft', 1, 'no');
      return forward();
    };
    for (const expected of [1, 2, 2]) {
      await look();
      expect(checks).toBe(expected);
      simulated.seconds += 30;
    }
  });

  it('is noted once, and again where that failed', async () => {
    const { simulated, watch, look } = await dialled(dialledAt);
    const { amendNotes } = simulated.tools.store;
    let writes = 0;
    simulated.tools.store.amendNotes = async (link, part) => {
      writes += 1;
      if (writes === 1) throw new CommandFailed('writing', null, 'full');
      await amendNotes(link, part);
    };
    for (let turn = 0; turn < 4; turn += 1) {
      watch.onEvent(rulesChanged);
      await look();
    }
    expect(writes).toBe(2);
  });

  it('is checked after a change of the ways in at once, and after one of peers once in ten seconds', async () => {
    const { simulated, watch, look, looks } = await dialled(dialledAt);
    await look();
    const evaluation = await evaluateNetwork(simulated.tools, await simulated.state());
    const change = () => watch.onPass(passOf(evaluation, [added('peer', 'x', 'y', 'it is new')]));
    await change();
    expect(looks()).toBe(1);
    simulated.seconds += 10;
    await change();
    await change();
    expect(looks()).toBe(2);
    simulated.drops = { forward: [], inbound };
    simulated.actual = { ...simulated.actual, underlay: { ...simulated.actual.underlay, uplinks: ['wlan0'] } };
    expect(await look()).toEqual([starts]);
  });

  it('is checked again where packet rules changed during the check', async () => {
    const { simulated, watch, look } = await dialled(dialledAt);
    simulated.tools.host.foreignDrops = async () => {
      const seen = simulated.drops;
      if (seen.inbound === null) watch.onEvent(rulesChanged);
      simulated.drops = { forward: [], inbound };
      return seen;
    };
    expect(await look()).toEqual([]);
    expect(await look()).toEqual([starts]);
  });

  it('degrades the status, which checks only what the daemon detected', async () => {
    const { simulated, look, looks } = await dialled(dialledAt);
    await look();
    simulated.drops = { forward: [], inbound };
    expect((await readStatus(simulated.tools))[0]).toMatchObject({ inbound: null });
    expect(looks()).toBe(1);
    simulated.seconds += 300;
    await look();
    expect((await readStatus(simulated.tools))[0]).toMatchObject({
      ...{ state: 'degraded', inbound },
      warnings: [expect.stringMatching(/^ufw drops UDP to port 51820 .*: other hosts cannot start a session/)],
    });
    simulated.drops = forward();
    expect((await readStatus(simulated.tools))[0]).toMatchObject({ inbound: null, warnings: [] });
  });

  it('is not checked where no peer dials this host', async () => {
    const { simulated, look, looks } = await dialled(null);
    simulated.drops = { forward: [], inbound };
    expect(await look()).toEqual([]);
    expect(looks()).toBe(0);
  });
});
