import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';

/**
 * A command as data: help, completion and manual pages are made from it, `run` carries it out. Heavy modules are
 * imported inside `run`, so that asking for help costs next to nothing.
 */
export interface Command {
  /** `join`, or `network create` for one of a group. */
  readonly name: string;
  /** Its argument as yargs writes it: `[network]` may be left out, `<network>` may not. */
  readonly argument?: {
    readonly usage: string;
    /** Of several words, one by the name of each. */
    readonly summary: string | Readonly<Record<string, string>>;
    /** As the `choices` of a flag, by the name of each word. */
    readonly choices?: Readonly<Record<string, readonly string[]>>;
  };
  readonly summary: string;
  readonly flags: Flags;
  readonly examples: readonly string[];
  /** Resolves to the exit code. */
  run(input: Input): Promise<number>;
}

/** What is said of all words of an argument together. */
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

/** The network of a command that several networks would be too many for. */
export const oneNetworkArgument = {
  usage: '[network]',
  summary: 'interface, or id or name of a network; default: the only one',
} as const;

/** The network that an administrator's command is about. */
export const theNetwork = { usage: '<network>', summary: 'id or name of a network' } as const;

/** The first words of commands that have two, and what help says of them. */
export const groups: Readonly<Record<string, string>> = {
  network: 'Manage private networks',
  key: 'Manage enrolment keys',
  peer: 'Manage the peers of a network',
  user: 'Manage the users of the organization',
  token: 'Manage your personal tokens',
  debug: 'Collect diagnostics',
  'control-plane': 'Run the embedded control plane',
};
