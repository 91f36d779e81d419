import { isFingerprint, isSameFingerprint } from '../../core/crypto/fingerprint.ts';
import { printable, WrongUsage } from '../../core/errors/index.ts';
import { findNamed, openAdmin, readWholeNetwork } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { confirm } from '../input/confirm.ts';
import { apiFlags, jsonFlag, yesFlag } from '../input/flags.ts';
import { note, printJson } from '../output/output.ts';
import type { Command } from '../parse/command.ts';
import { thePeer } from './peer.ts';

export const approvePeer: Command = {
  name: 'peer approve',
  argument: thePeer,
  summary: 'Approve a peer that waits, after a comparison of its fingerprint',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    ...yesFlag,
    fingerprint: {
      kind: 'text',
      value: 'TEXT',
      summary: 'the fingerprint that the host shows; without a match, nothing is approved',
    },
  },
  examples: [
    'cpn peer approve office laptop',
    'cpn peer approve office 7 --fingerprint 8b272a41563a8e2e04dacd43a56d3221',
  ],
  async run(input) {
    const expected = input.text('fingerprint');
    if (expected !== undefined && !isFingerprint(expected))
      throw new WrongUsage(
        '--fingerprint is not a whole fingerprint: 32 hexadecimal digits, as "cpn status" shows them',
      );
    const service = await openAdmin(input);
    if (!(await service.describes('peer-approval')))
      throw new WrongUsage('this control plane does not approve peers: each peer is in the network from its enrolment');
    const network = await readWholeNetwork(service, input.argument('network') ?? '');
    const peer = findNamed(network.peers, input.argument('peer') ?? '', 'peer');
    const { fingerprint } = peer;
    if (fingerprint === undefined) {
      if (input.switch('json')) printJson(peer);
      else note(`peer ${printable(peer.name)} (${peer.id}) does not wait for approval`);
      return exitCodes.done;
    }
    if (expected !== undefined && !isSameFingerprint(expected, fingerprint))
      throw new WrongUsage(
        `peer ${peer.id} (${printable(peer.name)}) has the fingerprint ${fingerprint}: it is another host`,
      );
    const question = `Approve ${peer.name} (${peer.address}) in ${network.name}? Its fingerprint is ${fingerprint}; "cpn status" on the host shows the same.`;
    if (expected === undefined && !(await confirm(question, input))) return exitCodes.failed;
    const approved = await service.approvePeer(network.id, peer.id);
    if (input.switch('json')) printJson(approved);
    else note(`approved peer ${printable(peer.name)} (${peer.id}) of network ${printable(network.name)}`);
    return exitCodes.done;
  },
};
