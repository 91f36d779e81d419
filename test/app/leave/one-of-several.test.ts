import { expect, it } from 'vitest';
import { leaveNetworks } from '../../../src/app/leave/leave.ts';
import { takeDown } from '../../../src/app/networks/down.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const links = ['cpn0', 'cpn1', 'cpn2'];

/** A host with three networks, of which one cannot be observed. */
async function start(broken: string) {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [])));
  const joined = await simulated.state();
  for (const link of links.slice(1)) await simulated.tools.store.write({ ...joined, interface: link });
  simulated.service.onRemovePeer = () => true;
  const observe = simulated.tools.host.observe;
  const host = {
    ...simulated.tools.host,
    observe: async (options: Parameters<typeof observe>[0]) => {
      if (options.link === broken) throw new CommandFailed(`ip link show ${broken}`, 1, 'no');
      return observe(options);
    },
  };
  return { ...simulated.tools, host };
}

it.each(links)('where %s cannot be taken down the others are, and it is the failure', async (broken) => {
  const tools = await start(broken);
  await expect(takeDown(tools, undefined, true)).rejects.toThrow(`ip link show ${broken}`);
  const { states } = await tools.store.list();
  expect(states.map(({ interface: link, enabled }) => [link, enabled])).toEqual(links.map((link) => [link, false]));
});

it.each(links)('where %s cannot be left the others are, and it is the failure', async (broken) => {
  const tools = await start(broken);
  await expect(leaveNetworks(tools)).rejects.toThrow(`ip link show ${broken}`);
  const { states } = await tools.store.list();
  expect(states.map((state) => state.interface)).toEqual([broken]);
});
