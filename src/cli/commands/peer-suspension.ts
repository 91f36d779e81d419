import { printable, WrongUsage } from '../../core/errors/index.ts';
import { findNamed, openAdmin, readWholeNetwork } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { confirm } from '../input/confirm.ts';
import { apiFlags, jsonFlag, yesFlag } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { warnOfLosses } from '../output/losses.ts';
import { note, printJson } from '../output/output.ts';
import { awaitPending, notePending, pendingFlags, readPatience } from '../output/pending-hosts.ts';
import type { Command } from '../parse/command.ts';
import { expiresFlag, readExpiry, requireExpiry } from '../parse/expiry-flag.ts';
import { noteKeys, thePeer } from './peer.ts';

export const suspendPeer: Command = {
  name: 'peer suspend',
  argument: thePeer,
  summary: 'Suspend a peer until it is resumed; it keeps its name and address',
  flags: { ...apiFlags, ...jsonFlag, ...yesFlag, ...pendingFlags },
  examples: ['cpn peer suspend office laptop --yes'],
  async run(input) {
    const patience = readPatience(input);
    const { service, network, peer } = await findPeer(input);
    warnOfLosses(network, peer);
    const question = `Suspend ${peer.name} (${peer.address})? Peers of ${network.name} drop it until it is resumed.`;
    if (!(await confirm(question, input))) return exitCodes.failed;
    const suspended = await service.updatePeer(network.id, peer.id, { suspended: true });
    if (input.switch('json')) {
      printJson({ ...suspended, pending: await awaitPending(service, network.id, patience) });
      return exitCodes.done;
    }
    note(`suspended peer ${printable(peer.name)} (${peer.id}) of network ${printable(network.name)}`);
    await noteKeys(service, network.id);
    notePending(await awaitPending(service, network.id, patience));
    return exitCodes.done;
  },
};

export const resumePeer: Command = {
  name: 'peer resume',
  argument: thePeer,
  summary: 'Resume a suspended peer; an expired one needs --expires',
  flags: { ...apiFlags, ...jsonFlag, ...expiresFlag },
  examples: ['cpn peer resume office laptop', 'cpn peer resume office laptop --expires 90d'],
  async run(input) {
    const expires_at = readExpiry(input, new Date());
    const { service, network, peer } = await findPeer(input);
    if (expires_at !== undefined) await requireExpiry(service);
    else if (peer.expires_at !== undefined && Date.parse(peer.expires_at) <= Date.now()) {
      throw new WrongUsage(`${peer.name} expired on ${peer.expires_at}; give a new --expires`);
    }
    const changes = { suspended: false, ...(expires_at !== undefined && { expires_at }) };
    const resumed = await service.updatePeer(network.id, peer.id, changes);
    if (input.switch('json')) printJson(resumed);
    else note(`resumed peer ${printable(peer.name)} (${peer.id}) of network ${printable(network.name)}`);
    return exitCodes.done;
  },
};

async function findPeer(input: Input) {
  const service = await openAdmin(input);
  if (!(await service.describes('peer-suspension'))) {
    throw new WrongUsage('this control plane cannot suspend peers; "cpn peer remove" takes a peer out of its network');
  }
  const network = await readWholeNetwork(service, input.argument('network') ?? '');
  return { service, network, peer: findNamed(network.peers, input.argument('peer') ?? '', 'peer') };
}
