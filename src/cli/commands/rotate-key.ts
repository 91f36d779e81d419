import type { HeldKey, RotationReport } from '../../app/rotation/rotate.ts';
import { printable } from '../../core/errors/index.ts';
import { listNames } from '../../core/util/list-names.ts';
import { openTools } from '../context.ts';
import { exitCodeOf, exitCodes } from '../exit-code.ts';
import { confirm } from '../input/confirm.ts';
import { jsonFlag, yesFlag } from '../input/flags.ts';
import { green, note, printError, printJson } from '../output/output.ts';
import { type Command, networkArgument } from '../parse/command.ts';
import { confirmFlag, readConfirmation } from '../pass-command.ts';

export const rotateKey: Command = {
  name: 'rotate-key',
  argument: networkArgument,
  summary: 'Rotate the key pair; rolls back unless the control plane, or a peer that answered before, confirms it',
  flags: { ...jsonFlag, ...yesFlag, ...confirmFlag },
  examples: ['cpn rotate-key', 'cpn rotate-key office --confirm-within 1m'],
  async run(input) {
    const { findHeldKeys, rotateKeys } = await import('../../app/rotation/rotate.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    const [network, confirmMs] = [input.argument('network'), readConfirmation(input)];
    const held = await findHeldKeys(tools, network);
    if (held.length > 0 && !(await confirm(describeHeld(held), input))) return exitCodes.failed;
    const reports = await rotateKeys(tools, network, confirmMs, held);
    if (input.switch('json')) printJson({ networks: reports.map(describeReport) });
    for (const report of reports) {
      if (report.failure) printError(report.failure);
      else note(`${report.interface} has a ${green('new key')}; ${describeAnswer(report)}`);
    }
    const [failure] = reports.flatMap((report) => report.failure ?? []);
    return failure ? exitCodeOf(failure) : exitCodes.done;
  },
};

function describeHeld(held: readonly HeldKey[]): string {
  const losses = held.map(({ interface: link, dialling }) => {
    return `${link}: devices that dial this connector alone (${listNames(dialling)}) lose the network, and need a new profile`;
  });
  return `${losses.join('; ')}. Rotate anyway?`;
}

function describeReport({ interface: link, state, answered, failure }: RotationReport) {
  return {
    interface: link,
    rotated: failure === null,
    public_key: state?.keyPair.publicKey ?? null,
    key_since: state?.keySince ?? null,
    answered,
  };
}

function describeAnswer({ answered }: RotationReport): string {
  if (answered !== null) return `${printable(answered)} completed the first handshake with it`;
  return 'the control plane lists it; no connected peer could confirm it';
}
