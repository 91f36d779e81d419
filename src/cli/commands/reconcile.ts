import { exitCodes } from '../exit-code.ts';
import { passCommand } from '../pass-command.ts';

export const reconcile = passCommand({
  name: 'reconcile',
  summary: 'One pass: read the newest map and make this host what it should be',
  examples: ['cpn reconcile'],
  nothing: 'is as it should be',
  exitCode: exitCodes.done,
  needsSync: true,
  perform: async (tools, network) => (await import('../../app/reconcile.ts')).reconcileNetworks(tools, network),
});
