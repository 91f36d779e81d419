import type { DrainReport, LastConnector } from '../../app/drain/drain.ts';
import { selectStates } from '../../app/select.ts';
import type { HostTools } from '../../app/tools.ts';
import { printable, WrongUsage } from '../../core/errors/index.ts';
import { listNames } from '../../core/util/list-names.ts';
import { openTools } from '../context.ts';
import { exitCodeOf, exitCodes } from '../exit-code.ts';
import { confirm } from '../input/confirm.ts';
import { jsonFlag, yesFlag } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { green, note, printError, printJson, warn, yellow } from '../output/output.ts';
import { type Command, networkArgument } from '../parse/command.ts';

/** Seconds. The minimum allows three consecutive observations without traffic. */
const usualTimeout = 60;
const shortestTimeout = 5;

export const drain: Command = {
  name: 'drain',
  argument: networkArgument,
  summary: 'Take a connector out of service: withdraw its routes, then wait until its traffic stops',
  flags: {
    ...jsonFlag,
    ...yesFlag,
    down: { kind: 'switch', summary: 'take it down afterwards, even if there is still traffic' },
    timeout: {
      kind: 'text',
      value: 'SECONDS',
      summary: 'exit with 1 if there is still traffic after this time',
      byDefault: String(usualTimeout),
    },
    undo: { kind: 'switch', summary: 'put the connector back into service' },
  },
  examples: ['cpn drain', 'cpn drain office --down --timeout 300', 'cpn drain --undo'],
  async run(input) {
    const timeout = input.number('timeout', shortestTimeout, 86_400) ?? usualTimeout;
    const [undo, down] = [input.switch('undo'), input.switch('down')];
    if (undo && down) throw new WrongUsage('--undo puts the connector back into service; give it without --down');
    const { drainNetworks, findLastConnectors, undoDrain } = await import('../../app/drain/drain.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    const network = input.argument('network');
    const last = undo ? [] : await findLastConnectors(tools, network, down);
    const sessions = down && !input.switch('yes') ? await describeSessions(tools, network) : null;
    const losses = [...(last.length > 0 ? [`${describeLast(last)}.`] : []), ...(sessions === null ? [] : [sessions])];
    if (losses.length > 0 && !(await confirm(`${losses.join(' ')} Drain anyway?`, input))) return exitCodes.failed;
    const reports = undo ? await undoDrain(tools, network) : await drainNetworks(tools, network, { timeout, down });
    return show(reports, timeout, input);
  },
};

/** Names the SSH sessions that end with the interfaces of the connectors. Null without any. */
async function describeSessions(tools: HostTools, network: string | undefined): Promise<string | null> {
  const { describeSessionsAtStake } = await import('../../app/networks/tunnelled-sessions.ts');
  const { states } = await selectStates(tools.store, network);
  const connectors = states.filter(({ enrollment }) => enrollment.type === 'connector');
  return describeSessionsAtStake(tools, connectors);
}

function describeLast(last: readonly LastConnector[]): string {
  const losses = last.map(({ interface: link, network, routes, relayed, dialling }) => {
    const peers = `${relayed.length} peers without an endpoint (${listNames(relayed)}) no longer reach each other`;
    const parts = [
      ...(routes.length === 0 ? [] : [`no other connector of ${network} serves ${listNames(routes)}`]),
      ...(relayed.length === 0 ? [] : [peers]),
      ...(dialling.length === 0 ? [] : [`devices that dial it alone (${listNames(dialling)}) lose the network`]),
    ];
    return `${link}: ${parts.join(', and ')}`;
  });
  return printable(losses.join('; '));
}

function show(reports: readonly DrainReport[], timeout: number, input: Input): number {
  const undo = input.switch('undo');
  if (input.switch('json')) {
    const networks = reports.map(({ interface: link, withdrawn, idle, state, dialling }) => ({
      interface: link,
      withdrawn,
      ...(idle !== null && { idle }),
      state,
      ...(dialling.length > 0 && { dialling }),
    }));
    printJson({ networks });
  }
  for (const report of reports) {
    const { interface: link, traffic, failure } = report;
    if (traffic !== null) note(`${yellow('not idle')} after ${timeout} s: ${traffic}`);
    if (failure) printError(failure);
    note(`${link} ${failure ? describeFailed(report, undo) : describeDone(report, undo)}`);
    if (!undo && !failure) noteDialling(report);
  }
  const [failure] = reports.flatMap((report) => report.failure ?? []);
  if (failure) return exitCodeOf(failure);
  return reports.every(({ idle }) => idle !== false) ? exitCodes.done : exitCodes.failed;
}

/** Routes have another connector by now, but devices with a profile do not. */
function noteDialling({ interface: link, dialling, state }: DrainReport): void {
  if (dialling.length === 0) return;
  const names = printable(listNames(dialling));
  const until = state === 'down' ? 'lost the network' : 'still go through it, and lose the network with it';
  warn(`devices that dial ${link} alone (${names}) ${until}; a new profile through another connector moves them`);
}

function describeDone({ interface: link, withdrawn, reasons, state }: DrainReport, undo: boolean): string {
  if (undo && withdrawn.length === 0) return `is ${green('in service')}`;
  if (undo) return `is in service except for ${reasons.join(', ')}`;
  if (state === 'down') return `is ${green('out of service')} and down; "cpn up ${link}" brings it back`;
  return `is ${green('out of service')}; "cpn drain ${link} --undo" puts it back into service`;
}

function describeFailed({ withdrawn, idle }: DrainReport, undo: boolean): string {
  if (undo) return 'goes back into service at the next pass of the daemon or "cpn reconcile"';
  return idle !== null && withdrawn.length > 0 ? 'is out of service, but could not be taken down' : 'is unchanged';
}
