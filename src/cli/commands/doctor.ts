import { openDoctor } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { jsonFlag } from '../input/flags.ts';
import { print, printJson } from '../output/output.ts';
import { diagnosesToJson, diagnosesToText } from '../output/show-diagnoses.ts';
import { type Command, networkArgument } from '../parse/command.ts';

export const doctor: Command = {
  name: 'doctor',
  argument: networkArgument,
  summary: 'Diagnose this host and its networks, with a fix for each problem; exits with 3 when there is one',
  flags: { ...jsonFlag, all: { kind: 'switch', summary: 'also show checks that passed', byDefault: 'no' } },
  examples: [
    'cpn doctor',
    'cpn doctor office --all',
    'cpn doctor --json | jq \'.findings[] | select(.verdict == "problem")\'',
  ],
  async run(input) {
    const { examine } = await import('../../app/doctor/examine.ts');
    const diagnoses = await examine(await openDoctor(input), input.argument('network'));
    if (input.switch('json')) printJson(diagnosesToJson(diagnoses));
    else print(diagnosesToText(diagnoses, input.switch('all')));
    return diagnoses.some(({ verdict }) => verdict === 'problem') ? exitCodes.pending : exitCodes.done;
  },
};
