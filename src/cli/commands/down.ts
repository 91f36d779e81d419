import { type Command, jsonFlag, networkArgument } from '../command.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { noNetwork } from '../no-network.ts';
import { note, printJson } from '../output.ts';

export const down: Command = {
  name: 'down',
  argument: networkArgument,
  summary: 'Take networks down and keep them down; forgets nothing',
  flags: jsonFlag,
  examples: ['cpn down office'],
  async run(input) {
    const { takeDown } = await import('../../app/leave.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    const links = await takeDown(tools, input.argument('network'));
    if (input.switch('json')) printJson({ networks: links.map((link) => ({ interface: link, state: 'down' })) });
    else if (links.length === 0) note(noNetwork);
    for (const link of links) note(`${link} is down; "cpn up ${link}" brings it up`);
    return exitCodes.done;
  },
};
