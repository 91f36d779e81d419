import { describe, expect, it } from 'vitest';
import { findLanProblems } from '../../../../src/app/problems/find-problems.ts';
import { LanProber } from '../../../../src/app/run/health/lan-prober.ts';
import { MissingTool } from '../../../../src/core/errors/index.ts';
import type { Peer } from '../../../../src/core/map/model.ts';
import { parseProbeTarget } from '../../../../src/core/map/options.ts';
import type { Joined } from '../../../../src/store/state/state.ts';
import { address, network, options, peer, prefix } from '../../../core/samples.ts';
import { joinedTo } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const office = prefix('192.168.50.0/24');
const depot = prefix('192.168.60.0/24');

/** A connector of both routes that probes these targets. */
function connectorOf(targets: readonly string[], self: Partial<Peer> = {}, changes: Partial<Joined> = {}): Joined {
  const map = network([peer(1, { type: 'connector', ...self })], { routes: [office, depot] });
  return joinedTo(map, { options: { ...options, probes: targets.map((text) => parseProbeTarget(text)) }, ...changes });
}

/** A prober at its host, and how often it triggered a pass. */
async function watchOver(state: Joined) {
  const simulated = await SimulatedHost.with(state);
  const seen = { changes: 0 };
  const watch = new LanProber(simulated.tools, 'cpn0', () => {
    seen.changes += 1;
  });
  const notes = () => simulated.tools.store.readNotes('cpn0');
  /** Runs one round for each verdict, which all targets share. */
  async function go(...verdicts: boolean[]): Promise<void> {
    const stop = new AbortController();
    const begins: number[] = [];
    simulated.onLanProbe = async () => {
      if (begins.at(-1) !== simulated.seconds) begins.push(simulated.seconds);
      // Rounds with name lookups take more than one turn of the event loop.
      await new Promise(setImmediate);
      if (begins.length >= verdicts.length) stop.abort();
      return verdicts[begins.length - 1] ?? false;
    };
    const watching = watch.run(stop.signal);
    await watch.onPass(passOf({ state }));
    await watching;
  }
  return { simulated, watch, seen, notes, go };
}

const said = (simulated: SimulatedHost) => simulated.logged.map(({ level, message }) => `${level}: ${message}`);

describe('a connector whose LAN', () => {
  it('does not answer notes the route, logs it once with its targets, and triggers a pass', async () => {
    const { simulated, seen, notes, go } = await watchOver(connectorOf(['192.168.50.20:80', '192.168.50.21']));
    await go(false, false);
    expect([(await notes()).dead, seen.changes, simulated.logged]).toEqual([[], 0, []]);
    await go(false, false);
    expect([(await notes()).dead, seen.changes]).toEqual([[office], 1]);
    expect(simulated.logged).toEqual([
      {
        level: 'warn',
        message: 'the LAN behind a route does not answer',
        facts: { interface: 'cpn0', route: office, targets: ['192.168.50.20:80', '192.168.50.21'] },
      },
    ]);
    await go(true, true, true);
    expect([(await notes()).dead, seen.changes]).toEqual([[], 2]);
    expect(said(simulated).at(-1)).toBe('info: the LAN behind a route answers again');
  });

  it('was out of service when the daemon started serves it again once it answers, and no sooner', async () => {
    const { simulated, seen, notes, go } = await watchOver(connectorOf(['192.168.50.20'], { withdrawn: [office] }));
    await go(true, true);
    expect([(await notes()).dead, seen.changes]).toEqual([[office], 1]);
    await go(true);
    expect([(await notes()).dead, seen.changes]).toEqual([[], 2]);
    expect(said(simulated)).toEqual([
      'info: out of service until the LAN answers',
      'info: the LAN behind a route answers again',
    ]);
  });

  it('could not be reported before a restart of the daemon is still dead', async () => {
    const { simulated, notes, go } = await watchOver(connectorOf(['192.168.50.20']));
    await simulated.tools.store.amendNotes('cpn0', { dead: [office] });
    await go(true, true);
    expect((await notes()).dead).toEqual([office]);
  });

  it('is out of service because the connector is drained does not count as dead', async () => {
    const withdrawn = [prefix('10.77.0.0/24'), office, depot];
    const { notes, go } = await watchOver(connectorOf(['192.168.50.20'], { withdrawn }, { drained: true }));
    await go(true);
    expect((await notes()).dead).toEqual([]);
  });
});

describe('nothing is probed', () => {
  const unasked = async (state: Joined | null, on = connectorOf(['192.168.50.20'])) => {
    const { simulated, watch, notes } = await watchOver(on);
    await simulated.tools.store.amendNotes('cpn0', { dead: [office] });
    simulated.onLanProbe = () => {
      throw new Error('this should not be called');
    };
    const stop = new AbortController();
    const watching = watch.run(stop.signal);
    await watch.onPass(passOf(state && { state }));
    await new Promise(setImmediate);
    stop.abort();
    await watching;
    expect(simulated.logged).toEqual([]);
    return (await notes()).dead;
  };

  it('without targets: no route is dead then', async () => {
    expect(await unasked(connectorOf([]))).toEqual([]);
  });

  it('on a host that is no connector: it has no route to be dead', async () => {
    expect(await unasked(connectorOf(['192.168.50.20'], { type: 'origin' }))).toEqual([]);
  });

  it('while the network is down: the health of its LANs stays the same', async () => {
    expect(await unasked(null)).toEqual([office]);
  });
});

describe('a target', () => {
  it('that is a name is probed at its first address, and at the last one while the resolver does not answer', async () => {
    const { simulated, notes, go } = await watchOver(connectorOf(['nas.example:80', '192.168.60.1']));
    simulated.dnsRecords = { 'nas.example': [address('192.168.50.20'), address('192.168.50.21')] };
    await go(true, true);
    expect((await notes()).probed).toEqual({ 'nas.example:80': { address: '192.168.50.20', trouble: null } });
    simulated.dnsRecords = {};
    await go(false, false, false);
    expect((await notes()).dead).toEqual([office, depot]);
  });

  it('is probed although the resolver of another one hangs', async () => {
    const { simulated, notes, go } = await watchOver(connectorOf(['nas.example:80', '192.168.60.1']));
    simulated.tools.host.resolve = () => new Promise(() => {});
    await go(false, false, false);
    expect((await notes()).dead).toEqual([depot]);
  });

  it('is resolved again after the resolver failed, and is probed in the next round after a bug', async () => {
    const { simulated, watch } = await watchOver(connectorOf(['nas.example:80', '192.168.60.1']));
    const stop = new AbortController();
    let lookups = 0;
    simulated.tools.host.resolve = async () => {
      lookups += 1;
      if (lookups === 1) throw new TypeError('undefined is not a function');
      return [address('192.168.50.20')];
    };
    let rounds = 0;
    simulated.onLanProbe = async ({ address }) => {
      if (address === '192.168.50.20') stop.abort();
      else rounds += 1;
      if (rounds === 2) throw new TypeError('null is not an object');
      return true;
    };
    const watching = watch.run(stop.signal);
    await watch.onPass(passOf({ state: await simulated.state() }));
    await watching;
    expect([lookups > 1, rounds > 1]).toEqual([true, true]);
    expect(said(simulated)[0]).toBe('error: this should not happen, please report it');
  });

  it('that cannot be probed proves nothing, and is logged once', async () => {
    const { simulated, watch, notes, seen } = await watchOver(connectorOf(['192.168.50.20']));
    const stop = new AbortController();
    let asked = 0;
    simulated.onLanProbe = () => {
      asked += 1;
      if (asked === 5) stop.abort();
      throw new MissingTool('ping', 'install it');
    };
    const watching = watch.run(stop.signal);
    await watch.onPass(passOf({ state: await simulated.state() }));
    await watching;
    expect([(await notes()).dead, seen.changes]).toEqual([[], 0]);
    expect(said(simulated)).toEqual(['warn: a probe failed']);
    const trouble = 'ping was not found on this host; install it';
    expect((await notes()).probed).toEqual({ '192.168.50.20': { address: '192.168.50.20', trouble } });
  });
});

type LanNotes = Pick<Parameters<typeof findLanProblems>[1], 'dead' | 'probed'>;
const describeLan = (state: Joined, notes: LanNotes) =>
  findLanProblems(state, { ...notes, ways: null }).map(({ text }) => text);

describe('status', () => {
  const state = connectorOf(['192.168.50.20:80', 'nas.example', '192.0.2.1'], { withdrawn: [office] });

  it('shows which LAN does not answer, and whether that is reported', () => {
    expect(describeLan(state, { dead: [office, depot], probed: {} })).toEqual([
      'the LAN behind 192.168.50.0/24 does not answer (target 192.168.50.20:80); the route is out of service here until it does',
      expect.stringMatching(
        /^the LAN behind 192\.168\.60\.0\/24 does not answer .*; the control plane still has the route in service here/,
      ),
      'probe target 192.0.2.1 is not behind a route that this host serves',
    ]);
  });

  it('shows which targets prove nothing', () => {
    const noted = (at: string | null, trouble: string | null = null) => ({
      dead: [],
      probed: { 'nas.example': { address: at === null ? null : address(at), trouble } },
    });
    expect(describeLan(state, noted(null))[0]).toContain('its name does not resolve');
    expect(describeLan(state, noted('192.0.2.7'))[0]).toContain('probe target nas.example is not behind');
    expect(describeLan(state, noted('192.168.50.7'))).toHaveLength(1);
    expect(describeLan(state, noted('192.168.50.7', 'no ping'))[0]).toContain('cannot be probed: no ping');
  });

  it('shows no targets for a host without probes', () => {
    expect(describeLan(connectorOf([]), { dead: [], probed: {} })).toEqual([]);
  });
});
