import type { CandidateOutcome, PathAttempt } from '../../../contract/paths.ts';
import { pathEnds } from '../../../core/events/describe-event.ts';
import { listNames } from '../../../core/util/list-names.ts';
import { formatExact } from '../text/format.ts';

const outcomes: Readonly<Record<CandidateOutcome, string>> = {
  'no-answer': 'no answer',
  handshake: 'a handshake, but no answer to a probe',
  refused: 'not tried, because the host excludes it',
};

/** Why two peers have no direct path, by their latest attempt. */
export function describeAttempt(attempt: PathAttempt, nameOf: (peer: number) => string): string {
  const at = formatExact(attempt.at);
  const nats = attempt.symmetric?.map(nameOf) ?? [];
  const nat = nats.length === 0 ? [] : [`the NAT of ${listNames(nats)} uses another port for each destination`];
  switch (attempt.outcome) {
    case 'ended':
      return [`over since ${at}`, pathEnds[attempt.why ?? 'lost']].join(': ');
    case 'symmetric':
      return [`not possible at ${at}`, ...nat].join(': ');
    case 'no-endpoints':
      return `not possible at ${at}: the peers have no endpoints to try`;
    case 'failed':
      return [`not found at ${at}`, ...listTried(attempt, nameOf), ...nat].join('; ');
  }
}

/** By peer. Endpoints that the reader may not see are counted by their outcome. */
function listTried({ tried = [] }: PathAttempt, nameOf: (peer: number) => string): string[] {
  return [...new Set(tried.map(({ by }) => by))].map((peer) => {
    const own = tried.filter(({ by }) => by === peer);
    const counts = Object.entries(outcomes).flatMap(([outcome, text]) => {
      const count = own.filter((each) => each.endpoint === undefined && each.outcome === outcome).length;
      return count === 0 ? [] : [`${count} ${count === 1 ? 'endpoint' : 'endpoints'}: ${text}`];
    });
    const named = own.flatMap(({ endpoint, outcome }) =>
      endpoint === undefined ? [] : [`${endpoint}: ${outcomes[outcome]}`],
    );
    return `${nameOf(peer)} tried ${[...named, ...counts].join(', ')}`;
  });
}
