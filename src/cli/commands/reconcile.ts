import { exitCodes } from '../exit-code.ts';
import { confirmFlag, passCommand, readConfirmation } from '../pass-command.ts';

export const reconcile = passCommand({
  name: 'reconcile',
  summary: 'Reconcile once: fetch the newest map and apply it to this host',
  flags: confirmFlag,
  examples: ['cpn reconcile', 'cpn reconcile office --confirm-within 1m'],
  nothing: 'is up to date',
  exitCode: exitCodes.done,
  needsSync: true,
  async perform(tools, network, input) {
    const { reconcileNetworks } = await import('../../app/networks/reconcile.ts');
    return reconcileNetworks(tools, network, readConfirmation(input));
  },
});
