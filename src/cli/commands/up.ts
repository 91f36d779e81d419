import { type Command, jsonFlag, networkArgument } from '../command.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { showPass } from '../show-pass.ts';

export const up: Command = {
  name: 'up',
  argument: networkArgument,
  summary: 'Bring networks up from what was last known; needs no control plane',
  flags: jsonFlag,
  examples: ['cpn up'],
  async run(input) {
    const { bringUp } = await import('../../app/reconcile.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    return showPass(await bringUp(tools, input.argument('network')), {
      json: input.switch('json'),
      nothing: 'is up already',
      exitCode: exitCodes.done,
    });
  },
};
