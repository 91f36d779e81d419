import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';

/** The flag of the commands that may change what a network is on this host. */
export const confirmFlag: Flags = {
  'confirm-within': {
    kind: 'text',
    value: 'TIME',
    summary: 'roll back unless the control plane, or a peer that answered before, answers within this time',
    byDefault: '20s',
  },
};

/** Milliseconds. Other commands wait as long, so that it is not for ever. */
const longest = 600_000;

/** What the flag says, in milliseconds; undefined when it was left out. */
export function readConfirmation(input: Input): number | undefined {
  return input.duration('confirm-within', longest);
}
