import { selectMeant } from '../../app/select.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { confirm } from '../input/confirm.ts';
import { allFlag, jsonFlag, yesFlag } from '../input/flags.ts';
import { noNetwork, note, printJson } from '../output/output.ts';
import { type Command, oneNetworkArgument } from '../parse/command.ts';

export const down: Command = {
  name: 'down',
  argument: oneNetworkArgument,
  summary: 'Take networks down until "cpn up"; keeps their state',
  flags: { ...jsonFlag, ...yesFlag, ...allFlag },
  examples: ['cpn down office', 'cpn down --all'],
  async run(input) {
    const [{ takeDown }, { describeSessionsAtStake }] = await Promise.all([
      import('../../app/networks/down.ts'),
      import('../../app/networks/tunnelled-sessions.ts'),
    ]);
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    const [network, all] = [input.argument('network'), input.switch('all')];
    const { states } = await selectMeant(tools.store, network, all);
    const loss = input.switch('yes') ? null : await describeSessionsAtStake(tools, states);
    const question = `Take ${states.map((state) => state.interface).join(', ')} down? ${loss}`;
    if (loss !== null && !(await confirm(question, input))) return exitCodes.failed;
    // The user confirmed an interface: the owner of a network may rename it meanwhile.
    const links = await takeDown(tools, all ? network : (states[0]?.interface ?? network), all);
    if (input.switch('json')) printJson({ networks: links.map((link) => ({ interface: link, state: 'down' })) });
    else if (links.length === 0) note(noNetwork);
    for (const link of links) note(`${link} is down; "cpn up ${link}" brings it up`);
    return exitCodes.done;
  },
};
