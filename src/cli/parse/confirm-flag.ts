import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';

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
