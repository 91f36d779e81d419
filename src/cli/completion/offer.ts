import { type Flag, mayBeOn } from '../input/flags.ts';
import type { Command } from '../parse/command.ts';

/** The completions of a value. Interfaces are those in this host's state, by file name. */
export type Offer = { readonly of: 'words'; readonly words: readonly string[] } | { readonly of: PathKind };
export type PathKind = 'files' | 'folders' | 'interfaces' | 'nothing';

/** A flag and the completions of its value. The value is null for a switch. */
export interface OfferedFlag {
  readonly name: string;
  readonly summary: string;
  readonly value: { readonly name: string; readonly offer: Offer } | null;
  readonly isRepeatable: boolean;
}

/** In the order of the table. Only a switch that may be on has a `--no-` form. */
export function offerFlags({ flags }: Command): OfferedFlag[] {
  return Object.entries(flags).flatMap(([name, flag]) => {
    const offered: OfferedFlag = {
      name: `--${name}`,
      summary: flag.summary,
      value: flag.kind === 'switch' ? null : { name: flag.value ?? 'TEXT', offer: offerOf(flag) },
      isRepeatable: flag.kind === 'list',
    };
    return mayBeOn(flag) ? [offered, { ...offered, name: `--no-${name}`, summary: `not: ${flag.summary}` }] : [offered];
  });
}

export function offerArguments({ argument }: Command): { readonly name: string; readonly offer: Offer }[] {
  const words = argument?.usage.match(/[[<][a-z-]+/g) ?? [];
  return words.map((word) => {
    const name = word.slice(1);
    const choices = argument?.choices?.[name];
    if (choices) return { name, offer: choices.length === 0 ? { of: 'nothing' } : { of: 'words', words: choices } };
    if (name === 'file') return { name, offer: { of: 'files' } };
    // A required network is one of the control plane, an optional one is a network of this host.
    return { name, offer: { of: word === '[network' ? 'interfaces' : 'nothing' } };
  });
}

function offerOf({ value, choices }: Flag): Offer {
  if (choices) return { of: 'words', words: choices };
  if (value === 'PATH' || value === 'FILE') return { of: 'files' };
  return { of: value === 'DIR' ? 'folders' : 'nothing' };
}
