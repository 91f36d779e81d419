import { printable, WrongUsage } from '../../core/errors/index.ts';
import { note } from '../output/output.ts';
import type { Input } from './input.ts';
import { hasTerminal } from './password.ts';
import { prompt } from './prompt.ts';

/**
 * Prompts for y or n; with `--yes` the answer is yes.
 *
 * @throws WrongUsage where there is no terminal to prompt on, and no `--yes`
 */
export function confirm(question: string, input: Input): Promise<boolean> {
  const validate = (answer: string) => (/^(y|yes|n|no)$/i.test(answer) ? undefined : 'type y or n');
  return ask({ question, hint: 'y/n', validate, isYes: (answer) => /^y/i.test(answer) }, input);
}

/**
 * Prompts for the name of what the command destroys. Takes any of `names`, and shows the first. With `--yes` it does not prompt.
 *
 * @throws WrongUsage where there is no terminal to prompt on, and no `--yes`
 */
export function confirmByName(question: string, names: readonly [string, ...string[]], input: Input): Promise<boolean> {
  const expected = `type ${printable(names[0].trim())} to confirm`;
  // An answer comes without the blanks around it.
  const isYes = (answer: string) =>
    names.some((name) => [name, printable(name)].some((each) => each.trim() === answer));
  const validate = (answer: string) => (isYes(answer) ? undefined : `${expected}, or press Ctrl-C to change nothing`);
  return ask({ question, hint: expected, validate, isYes }, input);
}

interface YesNoQuestion {
  readonly question: string;
  readonly hint: string;
  /** What is wrong with an answer; undefined for one that is taken. */
  readonly validate: (answer: string) => string | undefined;
  readonly isYes: (answer: string) => boolean;
}

async function ask({ question, hint, validate, isYes }: YesNoQuestion, input: Input): Promise<boolean> {
  if (input.switch('yes')) return true;
  if (!hasTerminal())
    throw new WrongUsage(
      `${printable(question)} There is no terminal for the answer, and nothing was done; to do it, add --yes`,
    );
  // The library's prompt for yes and no takes single letters, h, j, k and l among them, for keys that move and choose.
  const answer = await prompt('text', {
    message: `${printable(question)} (${hint})`,
    validate: (typed = '') => validate(typed.trim()),
  });
  const isConfirmed = answer !== null && isYes(answer.trim());
  if (!isConfirmed) note('nothing was done');
  return isConfirmed;
}
