import { type Command, jsonFlag, networkArgument } from '../command.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { showPass } from '../show-pass.ts';

export const plan: Command = {
  name: 'plan',
  argument: networkArgument,
  summary: 'Show what a pass would change, and why; changes nothing. Exits with 3 when something would',
  flags: jsonFlag,
  examples: ['cpn plan', 'cpn plan --json office'],
  async run(input) {
    const { planNetworks } = await import('../../app/reconcile.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    return showPass(await planNetworks(tools, input.argument('network')), {
      json: input.switch('json'),
      nothing: 'is as it should be',
      exitCode: exitCodes.pending,
    });
  },
};
