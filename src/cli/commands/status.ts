import type { NetworkStatus, PeerStatus } from '../../app/problems/network-status.ts';
import type { StateTools, Tools } from '../../app/tools.ts';
import { printable, WrongUsage } from '../../core/errors/index.ts';
import { type Prefix, parsePrefix } from '../../core/net/cidr.ts';
import { isProblem } from '../../core/problems/problem.ts';
import { openTools, readDaemon } from '../context.ts';
import { exitCodeOf, exitCodes } from '../exit-code.ts';
import { jsonFlag, wideFlag } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { noNetwork, note, print, printError, printJson, red, yellow } from '../output/output.ts';
import { formerToJson, type PeerRates, statusToJson, statusToText } from '../output/show-status.ts';
import { terminalColumns } from '../output/terminal/fit.ts';
import { redraw } from '../output/terminal/redraw.ts';
import { type Command, networkArgument } from '../parse/command.ts';

export const status: Command = {
  name: 'status',
  argument: networkArgument,
  summary: 'Show peers, routes and drift as observed on this host',
  flags: {
    ...jsonFlag,
    ...wideFlag,
    check: { kind: 'switch', summary: 'exit with 3 unless every network is up and sync is not refused' },
    serving: {
      kind: 'text',
      value: 'CIDR',
      summary: 'with --check: exit with 0 if this host is the connector in service for this route, else with 3',
    },
    watch: { kind: 'switch', summary: 'refresh every 2 s until interrupted' },
  },
  examples: [
    'cpn status',
    'cpn status --json | jq .networks[0].peers',
    'cpn status --watch',
    'cpn status --check --serving 192.168.50.0/24',
  ],
  async run(input) {
    if (input.switch('watch') && (input.switch('json') || input.switch('check')))
      throw new WrongUsage('--watch runs until interrupted; leave out --json and --check');
    const route = readRoute(input);
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    if (route !== null) return checkServing(tools, input, route);
    return input.switch('watch') ? watch(tools, input) : showOnce(tools, input);
  },
};

/** The route of `--serving`; null without it. */
function readRoute(input: Input): Prefix | null {
  const text = input.text('serving');
  if (text === undefined) return null;
  if (!input.switch('check')) throw new WrongUsage('--serving judges one route; add --check');
  return parsePrefix(text, '--serving');
}

async function checkServing(tools: Tools, input: Input, route: Prefix): Promise<number> {
  const { readServing } = await import('../../app/status/read-serving.ts');
  const { interface: link, reason } = await readServing(tools, route, input.argument('network'));
  const isServing = reason === null;
  if (input.switch('json')) printJson({ serving: { route, interface: link, in_service: isServing, reason } });
  else print(isServing ? `${route} in service on ${link}` : `${route} not in service: ${printable(reason)}`);
  return isServing ? exitCodes.done : exitCodes.pending;
}

/** The networks that were left while their control planes were unreachable. Warns about each. */
async function readFormer(tools: StateTools) {
  const { describeFormer, listFormer } = await import('../../app/networks/former-networks.ts');
  const memberships = await listFormer(tools);
  for (const former of memberships) tools.warn(describeFormer(former));
  return memberships;
}

/** Warns if the daemon was killed: its pid file remains. Reachability needs a running daemon. */
export async function readNetworks(tools: Tools, input: Input): Promise<NetworkStatus[]> {
  const { readStatus } = await import('../../app/status/status.ts');
  const [read, daemon] = await Promise.all([readStatus(tools, input.argument('network')), readDaemon(input)]);
  if (daemon?.alive) return read;
  const networks = read.map((network) => ({ ...network, reachability: null }));
  if (daemon === null) return networks;
  const killed = `the daemon (pid ${daemon.pid}) was killed; this host receives no changes of the network; start it with "systemctl start cpn" or "cpn run"`;
  return networks.map((network) => ({ ...network, warnings: [...network.warnings, killed] }));
}

async function showOnce(tools: Tools, input: Input): Promise<number> {
  const networks = await readNetworks(tools, input);
  const former = await readFormer(tools);
  if (input.switch('json')) printJson({ networks: networks.map(statusToJson), ...formerToJson(former) });
  else if (networks.length === 0) note(noNetwork);
  else print(networks.map((network) => statusToText(network, tools.now(), columnsFor(input))).join('\n\n'));
  for (const { failure } of networks) if (failure) printError(failure);
  return judge(networks, input.switch('check'));
}

/** The columns that a network's text must fit. Null for whole rows. */
function columnsFor(input: Input): number | null {
  return input.switch('wide') ? null : terminalColumns();
}

function judge(networks: readonly NetworkStatus[], check: boolean): number {
  const healthy = networks.length > 0 && networks.every(({ problems }) => !problems.some(isProblem));
  if (check) return healthy ? exitCodes.done : exitCodes.pending;
  const [failure] = networks.flatMap((network) => network.failure ?? []);
  return failure ? exitCodeOf(failure) : exitCodes.done;
}

async function watch(tools: Tools, input: Input): Promise<number> {
  const measure = rateMeter();
  await redraw(async () => {
    // On a terminal, a redraw would overwrite a line that was printed meanwhile.
    const warnings: string[] = [];
    const listening = { ...tools, warn: (text: string) => void warnings.push(text) };
    const networks = await readNetworks(listening, input);
    await readFormer(listening);
    const rates = measure(networks, tools.monotonic());
    const texts = networks.map((network) => {
      const text = statusToText(network, tools.now(), columnsFor(input), rates);
      return network.failure ? `${text}\n${red('failed')} ${printable(network.failure.message)}` : text;
    });
    const warned = warnings.map((text) => `${yellow('warning')} ${printable(text)}`);
    return [...(networks.length === 0 ? [noNetwork] : texts), ...warned].join('\n\n');
  });
  return exitCodes.done;
}

interface CounterReading {
  readonly rxBytes: number;
  readonly txBytes: number;
}

/** The function computes each peer's rates since its last call. `at` is monotonic, in seconds. */
export function rateMeter() {
  let last: { readonly at: number; readonly readings: ReadonlyMap<string, CounterReading> } | null = null;
  return (networks: readonly Pick<NetworkStatus, 'interface' | 'peers'>[], at: number) => {
    const before = last;
    const named = networks.flatMap(({ interface: link, peers }) =>
      peers.map((peer): [string, CounterReading] => [nameOf(link, peer), peer]),
    );
    last = { at, readings: new Map(named) };
    return (link: string, peer: PeerStatus): PeerRates => {
      const known = before?.readings.get(nameOf(link, peer));
      const seconds = at - (before?.at ?? at);
      return {
        received: growth(known?.rxBytes, peer.rxBytes, seconds),
        sent: growth(known?.txBytes, peer.txBytes, seconds),
      };
    };
  };
}

/** Counters that decreased belong to a peer that was removed and added again. */
function growth(before: number | undefined, now: number, seconds: number): number | null {
  return before === undefined || now < before || seconds <= 0 ? null : (now - before) / seconds;
}

function nameOf(link: string, { publicKey }: Pick<PeerStatus, 'publicKey'>): string {
  return `${link} ${publicKey}`;
}
