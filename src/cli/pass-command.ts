import type { PassReport } from '../app/networks/pass-report.ts';
import type { Tools } from '../app/tools.ts';
import { openTools } from './context.ts';
import { type Flags, jsonFlag } from './input/flags.ts';
import type { Input } from './input/input.ts';
import { type Showing, showPass } from './output/show-pass.ts';
import { type Command, networkArgument } from './parse/command.ts';

/** The differences between the commands that run or plan a pass over networks. */
interface PassCommand extends Pick<Command, 'name' | 'summary' | 'examples'>, Omit<Showing, 'json'> {
  readonly flags?: Flags;
  /** Loads the use case, which is heavy, and runs it. */
  perform(tools: Tools, network: string | undefined, input: Input): Promise<PassReport[]>;
}

export function passCommand({ name, summary, flags, examples, perform, ...showing }: PassCommand): Command {
  return {
    name,
    argument: networkArgument,
    summary,
    flags: { ...jsonFlag, ...flags },
    examples,
    async run(input) {
      const tools = await openTools(input);
      await tools.host.check({ firewall: false });
      const reports = await perform(tools, input.argument('network'), input);
      return showPass(reports, { ...showing, json: input.switch('json') });
    },
  };
}

export const confirmFlag: Flags = {
  'confirm-within': {
    kind: 'text',
    value: 'TIME',
    summary: 'roll back unless the control plane, or a peer that answered before, answers within this time',
    byDefault: '20s',
  },
};

/** Milliseconds. Limited, because other commands wait meanwhile. */
const longest = 600_000;

/** The value of the flag in milliseconds. Undefined if it was omitted. */
export function readConfirmation(input: Input): number | undefined {
  return input.duration('confirm-within', longest);
}
