import { exitCodes } from '../exit-code.ts';
import { passCommand } from '../pass-command.ts';

/** Milliseconds; other commands wait meanwhile. */
const longestConfirmation = 600_000;

export const reconcile = passCommand({
  name: 'reconcile',
  summary: 'One pass: read the newest map and make this host what it should be',
  flags: {
    'confirm-within': {
      kind: 'text',
      value: 'TIME',
      summary:
        'how soon the control plane, or a peer that answered before, must answer after a change of the network; else it is taken back',
      byDefault: '20s',
    },
  },
  examples: ['cpn reconcile', 'cpn reconcile office --confirm-within 1m'],
  nothing: 'is as it should be',
  exitCode: exitCodes.done,
  needsSync: true,
  async perform(tools, network, input) {
    const { reconcileNetworks } = await import('../../app/reconcile.ts');
    return reconcileNetworks(tools, network, input.duration('confirm-within', longestConfirmation));
  },
});
