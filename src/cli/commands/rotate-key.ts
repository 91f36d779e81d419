import type { RotationReport } from '../../app/rotation/rotate.ts';
import { printable } from '../../core/errors.ts';
import { type Command, jsonFlag, networkArgument } from '../command.ts';
import { confirmFlag, readConfirmation } from '../confirm-flag.ts';
import { openTools } from '../context.ts';
import { exitCodeOf, exitCodes } from '../exit-code.ts';
import { green, note, printError, printJson } from '../output.ts';

export const rotateKey: Command = {
  name: 'rotate-key',
  argument: networkArgument,
  summary: 'Make a new key pair; the old one comes back unless a peer that answered before answers to the new one',
  flags: { ...jsonFlag, ...confirmFlag },
  examples: ['cpn rotate-key', 'cpn rotate-key office --confirm-within 1m'],
  async run(input) {
    const { rotateKeys } = await import('../../app/rotation/rotate.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    const reports = await rotateKeys(tools, input.argument('network'), readConfirmation(input));
    if (input.switch('json')) printJson({ networks: reports.map(describeReport) });
    for (const report of reports) {
      if (report.failure) printError(report.failure);
      else note(`${report.interface} has a ${green('new key')}; ${describeAnswer(report)}`);
    }
    const [failure] = reports.flatMap((report) => report.failure ?? []);
    return failure ? exitCodeOf(failure) : exitCodes.done;
  },
};

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
  if (answered !== null) return `${printable(answered)} answered to it first`;
  return 'the control plane lists it, and no peer was connected that could answer to it';
}
