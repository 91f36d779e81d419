import { isDefaultRoute } from '../../core/full-tunnel.ts';
import { type Command, jsonFlag } from '../command.ts';
import { confirmFlag, readConfirmation } from '../confirm-flag.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { changeFlags, readChanges } from '../option-changes.ts';
import { showPass } from '../show-pass.ts';

export const set: Command = {
  name: 'set',
  argument: {
    usage: '[network]',
    summary: 'an interface, or the id or name of a network; the only one when left out',
  },
  summary: 'Change the options of a joined network, and make this host what they say',
  flags: {
    ...jsonFlag,
    ...changeFlags,
    ...confirmFlag,
    'dry-run': {
      kind: 'switch',
      summary: 'change nothing, and show what would change; exits with 3 when anything would',
    },
  },
  examples: ['cpn set --mtu 1380', 'cpn set office --endpoint 203.0.113.22:51821 --dry-run'],
  async run(input) {
    const changes = await readChanges(input);
    const { planOptions, setOptions } = await import('../../app/set-options.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false, fullTunnel: changes.allowRoutes.some(isDefaultRoute) });
    const network = input.argument('network');
    const isDry = input.switch('dry-run');
    const report = isDry
      ? await planOptions(tools, network, changes)
      : await setOptions(tools, network, changes, readConfirmation(input));
    return showPass([report], {
      json: input.switch('json'),
      nothing: isDry ? 'would stay as it is' : 'has these options now; nothing else had to change',
      exitCode: isDry ? exitCodes.pending : exitCodes.done,
    });
  },
};
