import { exitCodes } from '../exit-code.ts';
import { passCommand } from '../pass-command.ts';

export const up = passCommand({
  name: 'up',
  summary: 'Bring networks up from what was last known; needs no control plane',
  examples: ['cpn up'],
  nothing: 'is up already',
  exitCode: exitCodes.done,
  perform: async (tools, network) => (await import('../../app/reconcile.ts')).bringUp(tools, network),
});
