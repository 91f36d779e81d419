import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { jsonFlag } from '../input/flags.ts';
import { print, printJson } from '../output/output.ts';
import { explanationToJson, explanationToText } from '../output/show-explanation.ts';
import type { Command } from '../parse/command.ts';

export const explain: Command = {
  name: 'explain',
  argument: { usage: '<address>', summary: 'an IP address, the name of a peer, or a name that this host resolves' },
  summary: 'Trace the path of a packet to an address; exits with 3 when the packet would be dropped',
  flags: jsonFlag,
  examples: ['cpn explain 192.168.50.10', 'cpn explain edge-1', 'cpn explain 10.77.0.2 --json | jq .stops_at'],
  async run(input) {
    const { explainAddress } = await import('../../app/inspect/explain.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    const explanation = await explainAddress(tools, input.argument('address') ?? '');
    if (input.switch('json')) printJson(explanationToJson(explanation));
    else print(explanationToText(explanation));
    return explanation.stop === null ? exitCodes.done : exitCodes.pending;
  },
};
