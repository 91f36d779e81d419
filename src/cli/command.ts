import type { Input } from './input.ts';

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
    readonly summary: string;
    /** As the `choices` of a flag, by the name of each word. */
    readonly choices?: Readonly<Record<string, readonly string[]>>;
  };
  readonly summary: string;
  readonly flags: Flags;
  readonly examples: readonly string[];
  /** Resolves to the exit code. */
  run(input: Input): Promise<number>;
}

export type Flags = Readonly<Record<string, Flag>>;

/** Every flag also has a variable, `CPN_` and its name in capitals. */
export interface Flag {
  /** A list may be given several times; a switch takes no value and has a `--no-` form. */
  readonly kind: 'text' | 'switch' | 'list';
  readonly summary: string;
  /** How help writes what is to be given. */
  readonly value?: string;
  /** What help names as the default. */
  readonly byDefault?: string;
  /** The words with a meaning of their own that it takes, for completion and the manual. */
  readonly choices?: readonly string[];
}

/** The flags of every command that reads. */
export const jsonFlag: Flags = {
  json: { kind: 'switch', summary: 'one JSON document on stdout, and nothing else there' },
};

/** The flags of every command that destroys. */
export const yesFlag: Flags = {
  yes: {
    kind: 'switch',
    summary: 'act without asking; where there is no terminal to ask on, the command acts in any case',
  },
};

export const networkArgument = {
  usage: '[network]',
  summary: 'an interface, or the id or name of a network; all of them when left out',
} as const;

/** The network that an administrator's command is about. */
export const theNetwork = { usage: '<network>', summary: 'id or name of a network' } as const;

/** The flags of the commands that name a control plane. */
export const apiFlags: Flags = {
  api: { kind: 'text', value: 'URL', summary: 'base address of the control plane' },
  'insecure-http': {
    kind: 'switch',
    summary: 'allow plain http beyond loopback; keys and tokens go over it unprotected',
  },
};
