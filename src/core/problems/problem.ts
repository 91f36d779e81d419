import { printable } from '../errors/index.ts';
import { accessEntries } from './access-entries.ts';
import type { ProblemFacts, Severity } from './entry.ts';
import { networkEntries } from './network-entries.ts';
import { peerEntries } from './peer-entries.ts';
import { routeEntries } from './route-entries.ts';

/** The problems and notes of `cpn status`, `cpn doctor`, `cpn explain` and the daemon's log. */
export const catalogue = { ...networkEntries, ...accessEntries, ...peerEntries, ...routeEntries };

/** Names of problems, for scripts: a name keeps its meaning. */
export type ProblemCode = keyof typeof catalogue;

/** What must be known to name a problem. */
export type FactsOf<Code extends ProblemCode> = Parameters<(typeof catalogue)[Code]['text']>[0];

/** A condition of a network on this host that a user should know. */
export interface Problem {
  readonly code: ProblemCode;
  /** The values in the text. */
  readonly facts: ProblemFacts;
  readonly severity: Severity;
  /** The condition in a few words, for one line of a terminal. */
  readonly summary: string;
  /** The same with all its facts; a clause without a full stop. */
  readonly text: string;
  /** What to type or do; null where there is nothing to do. */
  readonly remedy: string | null;
  /** False where `cpn status` already shows it in a table or in a line of its own. */
  readonly isWarning: boolean;
}

/** Words a problem. Names that a control plane chose are made printable. */
export function problem<Code extends ProblemCode>(code: Code, facts: FactsOf<Code>): Problem {
  const { severity, summary, text, remedy, isWarning } = catalogue[code] as unknown as Wording;
  const words = remedy(facts);
  return {
    code,
    facts: facts as ProblemFacts,
    severity: typeof severity === 'function' ? severity(facts) : severity,
    summary: printable(summary(facts)),
    text: printable(text(facts)),
    remedy: words === null ? null : printable(words),
    isWarning: typeof isWarning === 'function' ? isWarning(facts) : isWarning,
  };
}

/** An entry without the types of its facts, which {@link problem} has checked. */
interface Wording {
  readonly severity: Severity | ((facts: unknown) => Severity);
  summary(facts: unknown): string;
  text(facts: unknown): string;
  remedy(facts: unknown): string | null;
  readonly isWarning: boolean | ((facts: unknown) => boolean);
}

/** A problem and its remedy in one line. */
export function toSentence({ text, remedy }: Problem): string {
  return remedy === null ? text : `${text}; ${remedy}`;
}

/** The problems and notes that no table of `cpn status` shows, a sentence each. */
export function toWarnings(problems: readonly Problem[]): string[] {
  return problems.filter(({ isWarning }) => isWarning).map(toSentence);
}

const ofDeleted: readonly ProblemCode[] = ['network-deleted', 'config-left', 'dns-file-left'];
/** What follows from an interface that is up. */
const ofInterface: readonly ProblemCode[] = [
  ...(['interface-missing', 'drift', 'port-mismatch', 'key-held', 'secret-mismatch', 'peer-hidden'] as const),
  ...(['peer-silent', 'peer-relayed', 'connector-alone', 'endpoint-unused', 'route-missing'] as const),
  ...(['route-bypassed', 'route-foreign', 'tunnel-bypassed', 'subnet-inside'] as const),
  ...(['lan-silent', 'lan-unreachable', 'probe-untried', 'map-unused', 'session-kept'] as const),
  ...(['domain-silent', 'domain-failing', 'names-port-taken'] as const),
];
const ofHost: readonly ProblemCode[] = ['interface-missing', 'drift', 'port-mismatch'];

/** Leaves out consequences: a deleted, down or unreadable network has no interface to judge. */
export function selectProblems(found: readonly Problem[]): Problem[] {
  const codes = new Set(found.map(({ code }) => code));
  if (codes.has('network-deleted')) return found.filter(({ code }) => ofDeleted.includes(code));
  if (codes.has('taken-down')) return found.filter(({ code }) => !ofInterface.includes(code));
  if (codes.has('host-unread')) return found.filter(({ code }) => !ofHost.includes(code));
  return codes.has('interface-missing') ? found.filter(({ code }) => code !== 'drift') : [...found];
}

/**
 * Derives the state of a network: it is `degraded` only with a problem, so it always has a reason.
 * A refused sync leaves the tunnel up. It fails `cpn status --check` without changing the state.
 */
export function stateOf(problems: readonly Problem[]): 'up' | 'degraded' | 'down' {
  const codes = new Set(problems.filter(isProblem).map(({ code }) => code));
  const ofDown = ['interface-missing', 'taken-down', 'network-deleted'] as const;
  if (ofDown.some((code) => codes.has(code))) return 'down';
  codes.delete('sync-refused');
  return codes.size === 0 ? 'up' : 'degraded';
}

/** True unless it is a note. */
export function isProblem({ severity }: Problem): boolean {
  return severity === 'problem';
}

const mostNamed = 3;

/** The reasons of a state in one line, the first three by name; null where there is none. */
export function summarize(problems: readonly Problem[]): string | null {
  const summaries = problems.filter(isProblem).map(({ summary }) => summary);
  const more = summaries.length - mostNamed;
  return summaries.length === 0
    ? null
    : [...summaries.slice(0, mostNamed), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}
