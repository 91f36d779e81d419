import { type Command, jsonFlag, networkArgument, yesFlag } from '../command.ts';
import { confirm } from '../confirm.ts';
import { openTools } from '../context.ts';
import { disableIdleDaemon } from '../daemon-unit.ts';
import { exitCodes } from '../exit-code.ts';
import { noNetwork } from '../no-network.ts';
import { note, printJson } from '../output.ts';

export const leave: Command = {
  name: 'leave',
  argument: networkArgument,
  summary: 'Leave networks: down, out of the network at the control plane, and nothing left on this host',
  flags: {
    ...jsonFlag,
    ...yesFlag,
    verify: { kind: 'switch', summary: 'look again afterwards, and fail if anything is left' },
  },
  examples: ['cpn leave office --yes --verify'],
  async run(input) {
    const [{ leaveNetworks, verifyLeft }, { selectStates }] = await Promise.all([
      import('../../app/leave.ts'),
      import('../../app/select.ts'),
    ]);
    const tools = await openTools(input);
    await tools.host.check({ firewall: input.switch('verify') });
    const network = input.argument('network');
    const links = (await selectStates(tools.store, network)).states.map((state) => state.interface);
    if (links.length > 0 && !(await confirm(`Leave ${links.join(', ')}? The key pair is lost.`, input)))
      return exitCodes.failed;
    const reports = await leaveNetworks(tools, network);
    if (input.switch('verify')) for (const link of links) await verifyLeft(tools, link);
    if (input.switch('json')) printJson({ networks: reports });
    else if (reports.length === 0) note(noNetwork);
    else for (const report of reports) note(`left ${report.interface}; nothing of it is on this host any more`);
    if (reports.length > 0) await disableIdleDaemon(input, tools.store);
    return exitCodes.done;
  },
};
