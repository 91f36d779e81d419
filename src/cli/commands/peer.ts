import { WrongUsage } from '../../core/errors.ts';
import { findNetwork, openAdmin } from '../admin.ts';
import { apiFlags, type Command, yesFlag } from '../command.ts';
import { confirm } from '../confirm.ts';
import { exitCodes } from '../exit-code.ts';
import { note } from '../output.ts';

export const removePeer: Command = {
  name: 'peer remove',
  argument: { usage: '<network> <peer>', summary: 'id or name of a network, and of a peer in it' },
  summary: 'Take a peer out of a network',
  flags: { ...apiFlags, ...yesFlag },
  examples: ['cpn peer remove office edge-1 --yes'],
  async run(input) {
    const service = await openAdmin(input);
    const network = await service.readNetwork(await findNetwork(service, input.argument('network') ?? ''));
    const named = input.argument('peer') ?? '';
    const [peer, ...more] = network.peers.filter(({ id, name }) => String(id) === named || name === named);
    if (peer === undefined) throw new WrongUsage(`network ${network.name} has no peer ${JSON.stringify(named)}`);
    if (more.length > 0)
      throw new WrongUsage(`${more.length + 1} peers are called ${JSON.stringify(named)}; name one by its id`);
    if (!(await confirm(`Take ${peer.name} (${peer.address}) out of ${network.name}?`, input))) return exitCodes.failed;
    await service.removePeer(network.id, peer.id);
    note(`took peer ${peer.name} (${peer.id}) out of network ${network.name}`);
    return exitCodes.done;
  },
};
