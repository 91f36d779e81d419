import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';

/** Help, completion and manual derive from it. `run` imports late, so that help stays fast. */
export interface Command {
  /** `join`, or `network create` for a member of a group. */
  readonly name: string;
  /** Its argument in yargs' notation: `[network]` is optional, `<network>` is required. */
  readonly argument?: {
    readonly usage: string;
    /** If the argument has several words, one summary per word. */
    readonly summary: string | Readonly<Record<string, string>>;
    /** Like the `choices` of a flag, per word. */
    readonly choices?: Readonly<Record<string, readonly string[]>>;
  };
  readonly summary: string;
  readonly flags: Flags;
  readonly examples: readonly string[];
  /** Resolves to the exit code. */
  run(input: Input): Promise<number>;
}

export function summarize({ summary }: NonNullable<Command['argument']>): string {
  if (typeof summary === 'string') return summary;
  return Object.entries(summary)
    .map(([word, text]) => `${word}: ${text}`)
    .join('; ');
}

export const networkArgument = {
  usage: '[network]',
  summary: 'interface, or id or name of a network; default: all networks',
} as const;

/** The argument of a command that needs exactly one network. */
export const oneNetworkArgument = {
  usage: '[network]',
  summary: 'interface, or id or name of a network; default: the only one',
} as const;

export const theNetwork = { usage: '<network>', summary: 'id or name of a network' } as const;

/** The first words of two-word commands, with their help text. */
export const groups: Readonly<Record<string, string>> = {
  network: 'Manage private networks',
  key: 'Manage enrolment keys',
  peer: 'Manage the peers of a network',
  rules: 'Manage who may reach what in a network',
  user: 'Manage the users of the organization',
  token: 'Manage your personal tokens',
  debug: 'Collect diagnostics',
  'control-plane': 'Run the embedded control plane',
};
