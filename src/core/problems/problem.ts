/** Names of problems, for scripts: a name keeps its meaning. */
export type ProblemCode =
  | 'state-unreadable'
  | 'host-unread'
  | 'taken-down'
  | 'network-deleted'
  | 'config-left'
  | 'interface-missing'
  | 'peer-unlisted'
  | 'drift'
  | 'port-mismatch'
  | 'peer-expired'
  | 'identity-cloned'
  | 'pin-mismatch'
  | 'secret-mismatch'
  | 'peer-hidden'
  | 'peer-silent'
  | 'route-missing'
  | 'route-bypassed'
  | 'route-foreign'
  | 'tunnel-bypassed'
  | 'subnet-inside'
  | 'key-held'
  | 'lan-silent'
  | 'lan-unreachable'
  | 'map-expired'
  | 'packets-dropped'
  | 'rules-unread'
  | 'sync-refused';

/** A condition of a network on this host that a user should know. */
export interface Problem {
  readonly code: ProblemCode;
  /** A `problem` keeps something from working. A `note` is worth knowing, and changes no state and no exit code. */
  readonly severity: 'problem' | 'note';
  /** The condition in a few words, for one line of a terminal. */
  readonly summary: string;
  /** The same with all its facts; a clause that fits after the name of the interface and a colon. */
  readonly text: string;
  /** What to type or do; null where there is nothing to do. */
  readonly remedy: string | null;
}

/**
 * The state of a network: `degraded` exactly where a problem stands in the list, so that the state always has its reason.
 *
 * A refused sync leaves the tunnel as it is. It fails `cpn status --check`, and does not change the state.
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
