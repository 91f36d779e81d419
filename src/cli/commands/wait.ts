import { printable, quote, WrongUsage } from '../../core/errors/index.ts';
import type { ReadinessCondition } from '../../core/health/readiness.ts';
import { parsePrefix } from '../../core/net/cidr.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { jsonFlag } from '../input/flags.ts';
import { type Input, parseChoice } from '../input/input.ts';
import { endStep, note, printJson, yellow } from '../output/output.ts';
import { type Command, networkArgument } from '../parse/command.ts';

const conditions = ['address', 'handshake', 'route'] as const;

export const wait: Command = {
  name: 'wait',
  argument: {
    usage: '[network] [cidr]',
    summary: { network: networkArgument.summary, cidr: 'route to wait for, after "--for route"' },
  },
  summary: 'Wait until an address is up, a peer has a handshake, or a route is active; changes nothing',
  flags: {
    ...jsonFlag,
    for: {
      kind: 'text',
      value: 'WHAT',
      summary: 'address, handshake, or route with its CIDR',
      byDefault: 'address',
      choices: conditions,
    },
    timeout: { kind: 'text', value: 'SECONDS', summary: 'exit with 3 when it takes longer', byDefault: '60' },
  },
  examples: ['cpn wait', 'cpn wait office --for handshake', 'cpn wait office --for route 192.168.50.0/24 --timeout 10'],
  async run(input) {
    const { network, condition } = await readCondition(input);
    const timeout = input.number('timeout', 0, 86_400) ?? 60;
    const { describeMissing, isReady, waitFor } = await import('../../app/status/wait.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    const networks = await waitFor(tools, network, condition, timeout);
    endStep(isReady(networks) ? 'done' : 'open');
    if (input.switch('json')) {
      const readiness = networks.map(({ interface: link, missing }) => ({
        interface: link,
        ready: missing === null,
        ...(missing !== null && { missing }),
      }));
      printJson({ networks: readiness });
    }
    if (isReady(networks)) return exitCodes.done;
    note(`${yellow('not ready')} after ${timeout} s: ${printable(describeMissing(networks))}`);
    return exitCodes.pending;
  },
};

/** To the command line, the CIDR after `--for route` is another argument. */
async function readCondition(input: Input): Promise<{ network: string | undefined; condition: ReadinessCondition }> {
  const kind = parseChoice('--for', input.text('for') ?? 'address', conditions);
  const words = [input.argument('network'), input.argument('cidr')].filter((word) => word !== undefined);
  if (kind === 'route') return readRoute(words);
  const [network, surplus] = words;
  if (surplus !== undefined)
    throw new WrongUsage(`only --for route takes a CIDR, not --for ${kind}; leave out the second argument`);
  return { network, condition: { for: kind } };
}

async function readRoute(
  words: readonly string[],
): Promise<{ network: string | undefined; condition: ReadinessCondition }> {
  const cidr = words.findLast((word) => /^[0-9a-fA-F.:]+\/[0-9]+$/.test(word));
  if (cidr === undefined) {
    const given = words.length === 0 ? '' : `, ${quote(words.at(-1))} is not one`;
    throw new WrongUsage(`--for route needs a CIDR${given}; example: --for route 192.168.50.0/24`);
  }
  const network = words.find((word) => word !== cidr);
  return { network, condition: { for: 'route', prefix: parsePrefix(cidr, '--for route') } };
}
