import { isDeepStrictEqual } from 'node:util';
import type { SetRules } from '../../../contract/rules.ts';
import type { Caller } from '../../domain/caller.ts';
import { compareAccess } from '../../domain/rules/compare.ts';
import { runTests } from '../../domain/rules/decide.ts';
import { checkElements } from '../../domain/rules/elements.ts';
import { resolveNames, showNames } from '../../domain/rules/names.ts';
import { listSelectors, type RuleSet } from '../../domain/rules/rule-set.ts';
import { InvalidRequest, PreconditionFailed } from '../../errors.ts';
import { makeNonce, type Revision } from '../../store/changes.ts';
import { readNetwork, type StoredNetwork } from '../../store/networks.ts';
import { type StoredRules, saveConfirmation, saveRules } from '../../store/rules.ts';
import type { Db } from '../../store/tables.ts';
import { type Author, record } from '../audit.ts';
import type { Context } from '../context.ts';
import { lockNetwork, requireNetwork } from '../networks.ts';
import { requireAuthor } from '../require-author.ts';
import { withRevision } from '../with-revision.ts';
import { type Ruled, readRuled, type ShownRules, showRules } from './ruled-network.ts';

/** True for the number of a change that the caller expects; true for any without If-Match. */
export type IsExpected = (change: Revision) => boolean;

export async function readNetworkRules({ db }: Context, caller: Caller, id: number): Promise<ShownRules> {
  return showRules(await readRuled(db, await requireNetwork(db, caller, id)));
}

/**
 * Replaces the rules of a network, if their tests pass. With `confirm_within_seconds`, the last
 * confirmed rules return unless a user confirms the new ones. Unchanged rules create no revision
 * and no conflict: a repeated request gets the same reply.
 */
export async function setRules(
  context: Context,
  caller: Caller,
  id: number,
  asked: SetRules,
  isExpected: IsExpected,
): Promise<ShownRules> {
  const seconds = asked.confirm_within_seconds;
  const shown = await withRevision(context, async (transaction, revise, append) => {
    const network = await lockNetwork(transaction, caller, id);
    const author = await requireAuthor(context, transaction, caller);
    const ruled = await readRuled(transaction, network);
    const { stored } = ruled;
    const confirmUntil =
      seconds === undefined ? null : new Date(context.now().getTime() + seconds * 1000).toISOString();
    if (isSame(ruled, asked)) return confirmLater(transaction, author, network, ruled, confirmUntil);
    if (!isExpected(stored.change)) throw changedMeanwhile();
    const next = resolveNames(asked, ruled.named);
    if (isSame(ruled, showNames(next, ruled.named)))
      return confirmLater(transaction, author, network, ruled, confirmUntil);
    checkRules(ruled, next, asked);
    await revise(id, {});
    const earlier = confirmUntil === null ? null : (stored.earlier ?? withoutState(stored));
    const saved = await saveNext(context, transaction, id, ruled, { ...next, earlier, confirmUntil, restoredAt: null });
    const { gainedCount: gained, lostCount: lost } = compareAccess(ruled.network, stored, next);
    const details = {
      ...summarize(saved),
      gained,
      lost,
      ...(confirmUntil !== null && { confirm_until: confirmUntil }),
    };
    const target = { kind: 'network', id, name: network.name } as const;
    await record(transaction, author, { action: 'rules.update', target, details });
    append(id, { type: 'rules.changed', details });
    return showRules({ ...ruled, stored: saved });
  });
  if (seconds !== undefined) context.rescheduleExpiry();
  return shown;
}

/** Refuses rules that need too many packet filters, or that fail one of their tests. */
function checkRules({ network }: Ruled, next: RuleSet, shown: Pick<SetRules, 'tests'>): void {
  checkElements(next.rules, network.peers);
  const failed = runTests(network, next, shown.tests).flatMap(({ passed, from, to, expect, why }, place) =>
    passed ? [] : [[`tests.${place}`, [`${from} to ${to} must be ${expect}: ${why}`]] as const],
  );
  if (failed.length > 0) throw new InvalidRequest(Object.fromEntries(failed.slice(0, mostFailed)));
}

const mostFailed = 20;

export function changedMeanwhile(): PreconditionFailed {
  return new PreconditionFailed('the rules have changed since they were read; read them again');
}

function isSame({ stored, named }: Ruled, asked: RuleSet): boolean {
  return isDeepStrictEqual(withoutState(showNames(stored, named)), withoutState(asked));
}

function withoutState({ mode, rules, tests, require_enforcement }: RuleSet): RuleSet {
  return { mode, rules, tests, require_enforcement };
}

/** Unchanged rules that wait for a confirmation get another deadline, or are confirmed. */
async function confirmLater(
  transaction: Db,
  author: Author,
  network: StoredNetwork,
  ruled: Ruled,
  until: string | null,
): Promise<ShownRules> {
  const { stored } = ruled;
  if (stored.earlier === null) return showRules(ruled);
  await saveConfirmation(transaction, network.id, until);
  if (until === null) await recordConfirmation(transaction, author, network);
  return showRules({ ...ruled, stored: { ...stored, confirmUntil: until } });
}

export async function recordConfirmation(db: Db, author: Author, { id, name }: StoredNetwork): Promise<void> {
  await record(db, author, { action: 'rules.confirm', target: { kind: 'network', id, name } });
}

/** Stores the next rules. Comes after the revision of the network. */
export async function saveNext(
  { random }: Context,
  transaction: Db,
  id: number,
  { stored }: { readonly stored: StoredRules },
  next: Omit<StoredRules, 'change' | 'gone'>,
): Promise<StoredRules> {
  const change = { revision: stored.change.revision + 1, nonce: makeNonce(random) };
  const named = listSelectors(next, next.earlier);
  const gone = Object.fromEntries(Object.entries(stored.gone).filter(([peer]) => named.has(`peer:${peer}`)));
  const saved = { ...next, change, gone };
  const { revision } = await readNetwork(transaction, id);
  await saveRules(transaction, id, revision, saved);
  return saved;
}

/** The details of audit entries and events. */
export function summarize({ mode, rules, tests, require_enforcement }: RuleSet): Record<string, unknown> {
  return {
    ...{ mode, rules: rules.length, tests: tests.length },
    ...(require_enforcement && { require_enforcement }),
  };
}
