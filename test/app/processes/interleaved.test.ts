import { describe, expect, it } from 'vitest';
import { drainNetworks, undoDrain } from '../../../src/app/drain/drain.ts';
import { joinNetwork } from '../../../src/app/join/join.ts';
import { finishLeaving } from '../../../src/app/leave/former-networks.ts';
import { leaveNetworks, takeDown } from '../../../src/app/leave/leave.ts';
import type { OptionChanges } from '../../../src/app/options/option-changes.ts';
import { setOptions } from '../../../src/app/options/set-options.ts';
import { bringUp, reconcileNetworks } from '../../../src/app/reconcile/reconcile.ts';
import { rotateKeys } from '../../../src/app/rotation/rotate.ts';
import type { Tools } from '../../../src/app/tools.ts';
import { CpnError, Locked } from '../../../src/core/errors/index.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import { requestFor, Site } from './site.ts';

type Command = (tools: Tools, site: Site) => Promise<unknown>;

const proxy = parseProxy('http://203.0.113.77:3128', '--proxy');
const changes: OptionChanges = {
  ...{ options: { mtu: 1300, hosts: true }, allowRoutes: [], refuseRoutes: [], addProbes: [], dropProbes: [] },
  ...{ name: 'renamed', proxy },
};

const commands = {
  reconcile: (tools) => reconcileNetworks(tools),
  up: (tools) => bringUp(tools, 'cpn0'),
  down: (tools) => takeDown(tools, 'cpn0'),
  set: (tools) => setOptions(tools, 'cpn0', changes),
  'rotate-key': async (tools) => throwLocked(await rotateKeys(tools, 'cpn0')),
  drain: async (tools) => throwLocked(await drainNetworks(tools, 'cpn0', { timeout: 0, down: false })),
  'drain --undo': async (tools) => throwLocked(await undoDrain(tools, 'cpn0')),
  leave: (tools) => leaveNetworks(tools, ['cpn0']),
  // The control plane is away during the leave, and back when the daemon tries again.
  'leave, and the end of it': async (tools, site) => {
    site.service.isAway = true;
    await leaveNetworks(tools, ['cpn0']);
    site.service.isAway = false;
    await finishLeaving(tools);
  },
  'join with the same key': (tools) => joinNetwork(tools, requestFor('key of office')),
  'join with another key': (tools) => joinNetwork(tools, requestFor('key of lab')),
} satisfies Record<string, Command>;

function throwLocked(reports: readonly { readonly failure: unknown }[]): void {
  for (const { failure } of reports) if (failure instanceof Locked) throw failure;
}

/** A host that joined one network, of which the control plane has a newer map. The network is up, unless `first` is to bring it up. */
async function open(first?: Command): Promise<Site> {
  const site = await Site.open();
  await joinNetwork(site.process(), requestFor('key of office'));
  if (first === commands.up) await commands.down(site.process());
  site.service.admit(7, 4);
  return site;
}

/** Runs a command as a process of its own, to its end or its failure. False where it found a lock held. */
async function run(site: Site, command: Command, tools = site.process()): Promise<boolean> {
  try {
    await command(tools, site);
  } catch (error) {
    if (error instanceof Locked) return false;
    if (!(error instanceof CpnError)) throw error;
  }
  return true;
}

const notHeld: ReadonlySet<string | symbol> = new Set(['configPath', 'isOnDisk', 'watch']);

/** The tools of a process that awaits `seam` before each of its calls to host, disk and control plane. */
function withSeams(tools: Tools, seam: () => Promise<void>): Tools {
  const wrap = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(of, name) {
        const value = Reflect.get(of, name) as unknown;
        if (typeof value !== 'function' || notHeld.has(name)) return value;
        return async (...given: unknown[]) => {
          await seam();
          return Reflect.apply(value, of, given);
        };
      },
    });
  const connect: Tools['connect'] = async (...given) => wrap(await tools.connect(...given));
  return { ...tools, store: wrap(tools.store), host: wrap(tools.host), connect };
}

/**
 * Runs both. The first one stands still at one of its calls, the earliest from the one with the number `from` on at which it holds no
 * lock, and the second one is run whole there. Returns the number of that call; null where there is no such call.
 */
async function interleave(site: Site, [first, second]: readonly [Command, Command], from: number) {
  let calls = 0;
  let at: number | null = null;
  let isHolding = false;
  const seam = async () => {
    calls += 1;
    if (calls >= from && at === null && !isHolding && (await run(site, second))) at = calls;
  };
  const tools = site.process();
  const lock: Tools['store']['lock'] = (work) =>
    tools.store.lock(async () => {
      isHolding = true;
      return work().finally(() => {
        isHolding = false;
      });
    });
  await run(site, first, withSeams({ ...tools, store: { ...tools.store, lock } }, seam));
  return at;
}

/** The state after another pass. One key is everywhere, once the networks are up and no change of keys is pending. */
async function settle(site: Site) {
  await reconcileNetworks(site.process());
  const summary = await site.summary();
  if (summary.states.some(({ enabled }) => !enabled) || (await site.isRotating())) {
    await run(site, (tools) => bringUp(tools));
    await reconcileNetworks(site.process());
  }
  for (const { link } of summary.states) {
    const keys = await site.keys(link);
    expect(new Set(keys).size, `the keys of ${link}: ${keys.join()}`).toBe(1);
  }
  await site.close();
  return summary;
}

async function inTurn(site: Site, each: readonly Command[]) {
  for (const command of each) expect(await run(site, command)).toBe(true);
  return settle(site);
}

type Name = keyof typeof commands;
const intruders: readonly Name[] = ['reconcile', 'down', 'set', 'rotate-key', 'leave', 'join with another key'];
// These make the most calls.
const ofDrains: readonly Name[] = ['reconcile', 'down', 'leave'];
const pairs = (Object.keys(commands) as Name[]).flatMap((one) =>
  (one.startsWith('drain') ? ofDrains : intruders).map((other) => [one, other] as const),
);

describe('a change by an operator', () => {
  it.each(['set', 'rotate-key', 'join with the same key', 'join with another key'] as const)(
    'keeps another process from %s, and passes go on',
    async (name) => {
      const site = await open();
      await site.process().store.change(async () => {
        expect(await run(site, commands[name])).toBe(false);
        expect(await run(site, commands.reconcile)).toBe(true);
      });
      expect(await run(site, commands[name])).toBe(true);
      await settle(site);
    },
  );
});

it('the end of one leave loses nothing of another one, at each of its moments', async () => {
  for (let from = 1; ; ) {
    const site = await open();
    await joinNetwork(site.process(), requestFor('key of lab'));
    site.service.isAway = true;
    await leaveNetworks(site.process(), ['cpn0']);
    site.service.isAway = false;
    const leaveOther: Command = async (tools) => {
      site.service.isAway = true;
      try {
        await leaveNetworks(tools, ['cpn1']);
      } finally {
        site.service.isAway = false;
      }
    };
    const at = await interleave(site, [(tools) => finishLeaving(tools), leaveOther], from);
    const { former, states } = await site.summary();
    const isListed = (network: number) => site.service.peersOf(network).some(({ id }) => id === 1);
    await site.close();
    if (at === null) return expect(from).toBeGreaterThan(1);
    // What removes a peer later is kept while the control plane lists that peer.
    const kept = [7, 8].filter(isListed);
    expect({ former: former.map(([, network]) => network), states }, `at call ${at}`).toEqual({
      former: kept,
      states: [],
    });
    from = at + 1;
  }
});

describe('two commands at the same time end as one after the other', () => {
  it.each(pairs)('%s, and %s at each moment at which it holds no lock', async (one, other) => {
    const both = [commands[one], commands[other]] as const;
    const start = () => open(commands[one]);
    const allowed = [await inTurn(await start(), both), await inTurn(await start(), both.toReversed())];
    for (let from = 1; ; ) {
      const site = await start();
      const at = await interleave(site, both, from);
      if (at === null) {
        expect(from).toBeGreaterThan(1);
        return site.close();
      }
      expect(allowed, `at call ${at}`).toContainEqual(await settle(site));
      from = at + 1;
    }
  });
});
