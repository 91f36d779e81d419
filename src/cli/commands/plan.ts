import { exitCodes } from '../exit-code.ts';
import { passCommand } from '../pass-command.ts';

export const plan = passCommand({
  name: 'plan',
  summary: 'Show what a pass would change, and why; changes nothing. Exits with 3 when something would',
  examples: ['cpn plan', 'cpn plan --json office'],
  nothing: 'is as it should be',
  exitCode: exitCodes.pending,
  perform: async (tools, network) => (await import('../../app/reconcile.ts')).planNetworks(tools, network),
});
