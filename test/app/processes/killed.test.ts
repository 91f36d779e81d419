import { describe, expect, it } from 'vitest';
import { joinNetwork } from '../../../src/app/join/join.ts';
import { leaveNetworks, takeDown } from '../../../src/app/leave/leave.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { reconcileNetworks } from '../../../src/app/reconcile/reconcile.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { type Command, commands, open, run, settle, withSeams } from './commands.ts';
import { requestFor, type Site } from './site.ts';

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
});
