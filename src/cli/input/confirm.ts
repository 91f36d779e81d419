import { printable, WrongUsage } from '../../core/errors/index.ts';
import { note } from '../output/output.ts';
import type { Input } from './input.ts';
import { hasTerminal } from './password.ts';
import { prompt } from './prompt.ts';

/** True without a prompt for `--yes`. @throws WrongUsage with neither `--yes` nor a terminal */
export function confirm(question: string, input: Input): Promise<boolean> {
  const validate = (answer: string) => (/^(y|yes|n|no)$/i.test(answer) ? undefined : 'type y or n');
  return ask({ question, hint: 'y/n', validate, isYes: (answer) => /^y/i.test(answer) }, input);
}

/** As {@link confirm}, but the user types a name of the object: any of `names`. Shows the first. */
export function confirmByName(question: string, names: readonly [string, ...string[]], input: Input): Promise<boolean> {
  const expected = `type ${printable(names[0].trim())} to confirm`;
  // The answer is trimmed.
  const isYes = (answer: string) =>
    names.some((name) => [name, printable(name)].some((each) => each.trim() === answer));
  const validate = (answer: string) => (isYes(answer) ? undefined : `${expected}, or press Ctrl-C to change nothing`);
  return ask({ question, hint: expected, validate, isYes }, input);
}

interface YesNoQuestion {
  readonly question: string;
  readonly hint: string;
  /** The problem of an answer. Undefined for a valid answer. */
  readonly validate: (answer: string) => string | undefined;
  readonly isYes: (answer: string) => boolean;
}

async function ask({ question, hint, validate, isYes }: YesNoQuestion, input: Input): Promise<boolean> {
  if (input.switch('yes')) return true;
  if (!hasTerminal())
    throw new WrongUsage(
      `${printable(question)} There is no terminal to confirm on, and nothing was done; to confirm, add --yes`,
    );
  // The library's confirm prompt takes letters such as h, j, k and l as navigation keys.
  const answer = await prompt('text', {
    message: `${printable(question)} (${hint})`,
    validate: (typed = '') => validate(typed.trim()),
  });
  const isConfirmed = answer !== null && isYes(answer.trim());
  if (!isConfirmed) note('nothing was done');
  return isConfirmed;
}
