import { confirmFlag, readConfirmation } from '../confirm-flag.ts';
import { exitCodes } from '../exit-code.ts';
import { passCommand } from '../pass-command.ts';

export const reconcile = passCommand({
  name: 'reconcile',
  summary: 'One pass: read the newest map and make this host what it should be',
  flags: confirmFlag,
  examples: ['cpn reconcile', 'cpn reconcile office --confirm-within 1m'],
  nothing: 'is as it should be',
  exitCode: exitCodes.done,
  needsSync: true,
  async perform(tools, network, input) {
    const { reconcileNetworks } = await import('../../app/reconcile.ts');
    return reconcileNetworks(tools, network, readConfirmation(input));
  },
});
