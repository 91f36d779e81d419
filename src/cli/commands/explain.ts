import { InvalidValue, WrongUsage } from '../../core/errors/index.ts';
import type { ExplainedFlow } from '../../core/explain/check-rules.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { jsonFlag } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { print, printJson } from '../output/output.ts';
import { explanationToJson, explanationToText } from '../output/show-explanation.ts';
import type { Command } from '../parse/command.ts';

const protocols = ['tcp', 'udp', 'icmp'] as const;

export const explain: Command = {
  name: 'explain',
  argument: { usage: '<address>', summary: 'an IP address, a peer by name or DNS name, or another DNS name' },
  summary: 'Trace the path of a packet to an address; exits with 3 when the packet would be dropped',
  flags: {
    port: { kind: 'text', value: 'PORT', summary: 'port of the connection, for the rules of a closed network' },
    protocol: {
      kind: 'text',
      value: 'NAME',
      summary: 'protocol of the connection',
      byDefault: 'tcp',
      choices: protocols,
    },
    ...jsonFlag,
  },
  examples: [
    'cpn explain 192.168.50.10',
    'cpn explain edge-1 --port 443',
    'cpn explain db.corp.example',
    'cpn explain 10.77.0.2 --json | jq .stops_at',
  ],
  async run(input) {
    const { explainAddress } = await import('../../app/inspect/explain.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    const explanation = await explainAddress(tools, input.argument('address') ?? '', readFlow(input));
    if (input.switch('json')) printJson(explanationToJson(explanation));
    else print(explanationToText(explanation));
    return explanation.stop === null ? exitCodes.done : exitCodes.pending;
  },
};

/** The connection to explain; null without a port and a protocol. */
function readFlow(input: Input): ExplainedFlow | null {
  const port = input.number('port', 1, 65_535) ?? null;
  const text = input.text('protocol') ?? 'tcp';
  const protocol = protocols.find((each) => each === text);
  if (protocol === undefined) {
    throw new InvalidValue('--protocol', text, `must be one of ${protocols.join(', ')}`);
  }
  if (protocol === 'icmp' && port !== null) throw new WrongUsage('icmp has no ports: leave out --port');
  return port === null && !input.has('protocol') ? null : { protocol, port };
}
