import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { allFlag, jsonFlag } from '../input/flags.ts';
import { noNetwork, note, printJson } from '../output/output.ts';
import { type Command, oneNetworkArgument } from '../parse/command.ts';

export const down: Command = {
  name: 'down',
  argument: oneNetworkArgument,
  summary: 'Take networks down until "cpn up"; keeps their state',
  flags: { ...jsonFlag, ...allFlag },
  examples: ['cpn down office', 'cpn down --all'],
  async run(input) {
    const { takeDown } = await import('../../app/leave/leave.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    const links = await takeDown(tools, input.argument('network'), input.switch('all'));
    if (input.switch('json')) printJson({ networks: links.map((link) => ({ interface: link, state: 'down' })) });
    else if (links.length === 0) note(noNetwork);
    for (const link of links) note(`${link} is down; "cpn up ${link}" brings it up`);
    return exitCodes.done;
  },
};
