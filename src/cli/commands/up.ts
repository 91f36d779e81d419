import { exitCodes } from '../exit-code.ts';
import { passCommand } from '../pass-command.ts';

export const up = passCommand({
  name: 'up',
  summary: 'Bring networks up from the stored map; needs no control plane',
  examples: ['cpn up'],
  nothing: 'is already up',
  exitCode: exitCodes.done,
  perform: async (tools, network) => (await import('../../app/networks/up.ts')).bringUp(tools, network),
});
