/** A `problem` keeps something from working. A `note` changes no state and no exit code. */
export type Severity = 'problem' | 'note';

/** The values that a text names, with the names that the log gives them. */
export type ProblemFacts = Readonly<Record<string, string | number | boolean | null | readonly string[]>> & {
  readonly interface: string;
};

/** The only place that words a problem. */
export interface Entry<Facts> {
  /** What the log and docs/problems.md call it: a constant, without values. */
  readonly title: string;
  readonly severity: Severity | ((facts: Facts) => Severity);
  /** What is wrong with which value: a clause without a full stop. */
  readonly text: (facts: Facts) => string;
  /** The same in a few words, for one line of a terminal. */
  readonly summary: (facts: Facts) => string;
  /** What to type or do; null where there is nothing to do. */
  readonly remedy: (facts: Facts) => string | null;
  /** False where `cpn status` already shows it in a table or in a line of its own. */
  readonly isWarning: boolean | ((facts: Facts) => boolean);
}

interface Given<Facts> extends Pick<Entry<Facts>, 'title' | 'severity' | 'text'> {
  readonly summary?: Entry<Facts>['summary'];
  readonly remedy?: Entry<Facts>['remedy'];
  readonly isWarning?: Entry<Facts>['isWarning'];
}

/** Checks the facts of an entry, and fills in the usual: a warning, without a remedy. */
export function entry<Facts extends object>(given: Given<Facts & { readonly interface: string }>) {
  const whole: Entry<Facts & { readonly interface: string }> = {
    summary: given.text,
    remedy: () => null,
    isWarning: true,
    ...given,
  };
  return whole;
}

/** The message of an error of the catalogue of errors, in two: what is wrong, and what to do. */
export function splitMessage({ message }: Error): { readonly text: string; readonly remedy: string | null } {
  const at = message.lastIndexOf('; ');
  return at < 0 ? { text: message, remedy: null } : { text: message.slice(0, at), remedy: message.slice(at + 2) };
}
