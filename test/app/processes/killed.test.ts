import { afterAll, describe, expect, it } from 'vitest';
import { joinNetwork } from '../../../src/app/join/join.ts';
import { leaveNetworks } from '../../../src/app/leave/leave.ts';
import { takeDown } from '../../../src/app/networks/down.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { Interrupted } from '../../../src/core/errors/index.ts';
import { type Command, closeOpened, commands, open, run, settle, withSeams } from './commands.ts';
import { requestFor, type Site } from './site.ts';

afterAll(closeOpened);

/** The calls after which host, disk or control plane are other than before. */
const changing = new Set([
  ...['write', 'writeConfig', 'setConfigAside', 'amendNotes', 'writeFormer', 'forget'],
  ...['apply', 'enroll', 'withdraw', 'changeKey', 'describePeer', 'removePeer'],
]);

/** Runs a command, and returns the host as it was each time just before a change, when a process that is killed leaves it so. */
async function killEverywhere(site: Site, command: Command): Promise<readonly { site: Site; before: string }[]> {
  const left: { site: Site; before: string }[] = [];
  const seam = async (call: string) => {
    if (changing.has(call)) left.push({ site: await site.fork(), before: `${left.length} ${call}` });
  };
  await run(site, command, withSeams(site.process(), seam));
  return left;
}

/** Leaves every network, and checks that nothing stays. */
async function leaveAll(site: Site, before: string): Promise<void> {
  site.service.isAway = false;
  await leaveNetworks(site.process());
  await reconcileNetworks(site.process());
  expect(await site.leftovers(), `killed before ${before}`).toEqual([]);
  await site.close();
}

it('down takes back from all networks the forwarding that one of them handed over to the other', async () => {
  const site = await open();
  await joinNetwork(site.process(), requestFor('key of lab'));
  await takeDown(site.process(), undefined, true);
  expect((await site.leftovers()).filter((each) => each.startsWith('net.'))).toEqual([]);
  await leaveAll(site, 'nothing');
});

describe('a command that was killed before any of its changes', () => {
  it.each(Object.keys(commands) as (keyof typeof commands)[])(
    '%s: ends as usual when it is repeated, and a leave then leaves nothing',
    async (name) => {
      const command = commands[name];
      const whole = await open(command);
      const states = await killEverywhere(whole, command);
      const expected = await settle(await whole.fork());
      await whole.close();
      for (const { site, before } of states) {
        await run(site, command);
        expect(await settle(await site.fork()), `killed before ${before}`).toEqual(expected);
        await leaveAll(site, before);
      }
      expect(states.length).toBeGreaterThan(0);
    },
  );

  it('rotate-key: ends as usual when it is repeated, where no peer answers to the new key', async () => {
    const whole = await open();
    whole.isSilent = true;
    const states = await killEverywhere(whole, commands['rotate-key']);
    await whole.close();
    for (const { site, before } of states) {
      await run(site, commands['rotate-key']);
      await settle(await site.fork());
      await leaveAll(site, before);
    }
    expect(states.length).toBeGreaterThan(8);
  });

  it('leave: the other network takes over what it needs, and the last leave leaves nothing', async () => {
    const site = await open();
    await joinNetwork(site.process(), requestFor('key of lab'));
    const states = await killEverywhere(site, commands.leave);
    await site.close();
    for (const each of states) await leaveAll(each.site, each.before);
    expect(states.length).toBeGreaterThan(5);
  });

  it('a pass over a network that was deleted: the next one ends it', async () => {
    const whole = await open();
    const update = { ...noUpdate, deletedAt: '2026-11-26T00:00:00.000Z' };
    const pass: Command = (tools) => passNetwork(tools, 'cpn0', update, { withinMs: 1 });
    const states = await killEverywhere(whole, pass);
    await whole.close();
    for (const { site, before } of states) {
      await passNetwork(site.process(), 'cpn0', noUpdate, { withinMs: 1 });
      const { states: known, hosts } = await site.summary();
      expect([known.map(({ enabled }) => enabled), hosts.length], `killed before ${before}`).toEqual(
        before.startsWith('0 ') ? [[true], 1] : [[false], 0],
      );
      await leaveAll(site, before);
    }
    expect(states.length).toBeGreaterThan(2);
  });

  it('a pass over a network that is back after a deletion: the next one brings it up', async () => {
    const whole = await open();
    const deleted = { ...noUpdate, deletedAt: '2026-11-26T00:00:00.000Z' };
    await passNetwork(whole.process(), 'cpn0', deleted, { withinMs: 1 });
    const back: Command = (tools) => passNetwork(tools, 'cpn0', { ...noUpdate, isBack: true }, { withinMs: 1 });
    const states = await killEverywhere(whole, back);
    await whole.close();
    for (const { site, before } of states) {
      const untouched = await site.fork();
      await run(site, back);
      expect((await settle(site)).states, `killed before ${before}`).toMatchObject([{ enabled: true }]);
      await leaveAll(untouched, before);
    }
    expect(states.length).toBeGreaterThan(5);
  });
});

describe('a signal at any moment of a command', () => {
  it.each(['up', 'set', 'rotate-key', 'join with the same key'] as const)(
    '%s: leaves the host as it was, or as after the command, and a leave then leaves nothing',
    async (name) => {
      const command = commands[name];
      const [without, whole] = [await open(command), await open(command)];
      await run(whole, command);
      const allowed = [await settle(without), await settle(whole)];
      let at = 1;
      for (let isOver = false; !isOver; at += 1) {
        const site = await open(command);
        const signal = new AbortController();
        let calls = 0;
        const seam = async () => {
          calls += 1;
          if (calls === at) signal.abort(new Interrupted('SIGTERM'));
        };
        const tools = {
          ...site.process(),
          deferSignals: <T>(work: (signal: AbortSignal) => Promise<T>) => work(signal.signal),
        };
        await run(site, command, withSeams(tools, seam));
        isOver = calls < at;
        expect(allowed, `at call ${at}`).toContainEqual(await settle(await site.fork()));
        await leaveAll(site, `call ${at}, after a signal`);
      }
      expect(at).toBeGreaterThan(5);
    },
  );
});
