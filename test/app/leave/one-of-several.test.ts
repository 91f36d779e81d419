import { expect, it } from 'vitest';
import { leaveNetworks } from '../../../src/app/leave/leave.ts';
import { takeDown } from '../../../src/app/networks/down.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import { Desk, joinedTo, mapAt } from '../desk.ts';

const links = ['cpn0', 'cpn1', 'cpn2'];

/** A host with three networks, of which one cannot be observed. */
async function start(broken: string) {
  const desk = await Desk.with(joinedTo(mapAt('"1"', [])));
  const joined = await desk.state();
  for (const link of links.slice(1)) await desk.tools.store.write({ ...joined, interface: link });
  desk.removes = () => true;
  const observe = desk.tools.host.observe;
  const host = {
    ...desk.tools.host,
    observe: async (options: Parameters<typeof observe>[0]) => {
      if (options.link === broken) throw new CommandFailed(`ip link show ${broken}`, 1, 'no');
      return observe(options);
    },
  };
  return { ...desk.tools, host };
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
