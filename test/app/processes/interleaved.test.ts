import { afterAll, describe, expect, it } from 'vitest';
import { joinNetwork } from '../../../src/app/join/join.ts';
import { leaveNetworks } from '../../../src/app/leave/leave.ts';
import { finishLeaving } from '../../../src/app/networks/former-networks.ts';
import type { Tools } from '../../../src/app/tools.ts';
import { type Command, closeOpened, commands, open, run, settle, withSeams } from './commands.ts';
import { requestFor, type Site } from './site.ts';

afterAll(closeOpened);

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
