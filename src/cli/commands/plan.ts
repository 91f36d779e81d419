import { exitCodes } from '../exit-code.ts';
import { passCommand } from '../pass-command.ts';

export const plan = passCommand({
  name: 'plan',
  summary: 'Show what reconcile would change, and why; exits with 3 when there are changes',
  examples: ['cpn plan', 'cpn plan --json office'],
  nothing: 'is up to date',
  exitCode: exitCodes.pending,
  perform: async (tools, network) => (await import('../../app/networks/reconcile.ts')).planNetworks(tools, network),
});
