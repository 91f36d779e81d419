import { type Command, jsonFlag, networkArgument } from '../command.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { showPass } from '../show-pass.ts';

export const reconcile: Command = {
  name: 'reconcile',
  argument: networkArgument,
  summary: 'One pass: read the newest map and make this host what it should be',
  flags: jsonFlag,
  examples: ['cpn reconcile'],
  async run(input) {
    const { reconcileNetworks } = await import('../../app/reconcile.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    return showPass(await reconcileNetworks(tools, input.argument('network')), {
      json: input.switch('json'),
      nothing: 'is as it should be',
      exitCode: exitCodes.done,
      needsSync: true,
    });
  },
};
