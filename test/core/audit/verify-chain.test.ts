import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type ChainedEntry, digestEntry, hashLink } from '../../../src/core/audit/chain.ts';
import { type ChainLink, createVerifier, type ExportedLink } from '../../../src/core/audit/verify-chain.ts';

const entry = (id: number, action = 'login', details: object = {}): ChainedEntry => ({
  ...{ id, at: '2030-01-01T00:00:00.000Z', action, address: '192.0.2.7', details: { ...details } },
  ...{ actor: { kind: 'user', id: 1, name: 'ada@example.net' }, target: { kind: 'session', id, name: null } },
});

/** Links from 1, one for each entry. */
function chainOf(entries: readonly ChainedEntry[]): ChainLink[] {
  let hash = '';
  return entries.map((each, index) => {
    const digest = digestEntry(each);
    hash = hashLink(hash, index + 1, digest);
    return { seq: index + 1, hash, digest, entry: each };
  });
}

function verify(links: readonly ChainLink[], exported: readonly ExportedLink[] = []) {
  const verifier = createVerifier(exported);
  for (const link of links) if (!verifier.take(link)) break;
  return verifier.finish();
}

const exportOf = ({ seq, hash, digest, entry: found }: ChainLink): ExportedLink => ({
  ...{ seq, hash, digest, id: found?.id ?? null, at: found?.at ?? '', action: found?.action ?? '' },
});

const five = chainOf([1, 2, 3, 4, 5].map((id) => entry(id)));
const changed = (seq: number, change: (link: ChainLink) => Partial<ChainLink>) =>
  five.map((link) => (link.seq === seq ? { ...link, ...change(link) } : link));

test('a digest and a hash are what the description of the API states', () => {
  const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url');
  const text =
    '{"action":"login","actor":{"id":1,"kind":"user","name":"ada@example.net"},"address":"192.0.2.7","at":"2030-01-01T00:00:00.000Z",' +
    '"details":{"a":[1,null],"b":"é"},"id":7,"target":{"id":7,"kind":"session","name":null}}';
  const found = digestEntry(entry(7, 'login', { b: 'é', a: [1, null] }));
  expect(found).toBe(sha256(text));
  expect(hashLink('', 1, found)).toBe(sha256(`\n1\n${found}\n`));
});

test('a lone surrogate in a name has a digest', () => {
  expect(digestEntry(entry(1, 'login', { name: '\ud800' }))).toHaveLength(43);
});

describe('an unchanged chain', () => {
  test('fits', () => {
    expect(verify(five)).toEqual({
      ...{ misfit: null, verified: 5, pruned: 0, first: 1, last: 5, compared: 0, older: 0 },
    });
  });

  test('fits entries that were exported', () => {
    expect(verify(five, five.slice(1, 3).map(exportOf))).toMatchObject({ misfit: null, compared: 2 });
  });

  test('may be empty', () => {
    expect(verify([])).toMatchObject({ misfit: null, first: null, last: null });
  });
});

describe('the first entry that does not fit is named', () => {
  test.each([
    ['its content was changed', changed(3, () => ({ entry: entry(3, 'logout') })), 3, 3, 'it was changed'],
    [
      'its content and its digest were changed',
      changed(3, () => ({ entry: entry(3, 'logout'), digest: digestEntry(entry(3, 'logout')) })),
      ...([3, 3, 'it was changed'] as const),
    ],
    ['it was removed with its link', five.filter(({ seq }) => seq !== 3), 4, 4, 'the links from 3 to 3 are missing'],
    [
      'it was removed',
      changed(3, () => ({ entry: null })),
      3,
      null,
      'it is missing, and no entry audit.prune covers it',
    ],
    ['all before it were removed', five.slice(2), 2, null, 'it is missing, and no entry audit.prune covers it'],
    [
      'others were put in its place',
      [...five.slice(0, 2), ...five.slice(3).map((link) => ({ ...link, seq: link.seq - 1 }))],
      ...([3, 4, 'it was changed'] as const),
    ],
  ])('where %s', (_, links, seq, id, problem) => {
    expect(verify(links).misfit).toEqual({ seq, entry: id, problem });
  });

  test('where the chain was written again, by what was exported', () => {
    const again = chainOf([1, 2, 3, 4, 5].map((id) => entry(id, id === 3 ? 'logout' : 'login')));
    expect(verify(again).misfit).toBeNull();
    const problem = 'it or an earlier entry differs from the exported entry 4';
    expect(verify(again, [five[3] as ChainLink].map(exportOf)).misfit).toEqual({ seq: 4, entry: 4, problem });
  });

  test('where an exported entry has another content', () => {
    const exported = { ...exportOf(five[1] as ChainLink), digest: digestEntry(entry(2, 'logout')) };
    expect(verify(five, [exported]).misfit).toMatchObject({ seq: 2, problem: 'it differs from the exported entry 2' });
  });

  test('where the end is missing, by what was exported', () => {
    const problem = 'it is missing: the chain ends at 3, before the exported entry 4';
    expect(verify(five.slice(0, 3), five.map(exportOf)).misfit).toEqual({ seq: 4, entry: 4, problem });
  });
});

describe('what retention removed', () => {
  const at = '2031-01-01T00:00:00.000Z';
  const statement = { ...entry(6, 'audit.prune', { before: '2030-06-01T00:00:00.000Z', through: 3 }), at };
  const six = chainOf([...five.map(({ entry: found }) => found as ChainedEntry), statement]);

  test('fits with a statement of it', () => {
    const links = six.slice(1).map((link) => (link.seq === 3 ? { ...link, entry: null } : link));
    expect(verify(links)).toMatchObject({ misfit: null, verified: 4, pruned: 1, first: 2, last: 6 });
  });

  test('does not fit beyond the statement', () => {
    const links = six.map((link) => (link.seq === 4 ? { ...link, entry: null } : link));
    expect(verify(links).misfit?.seq).toBe(4);
  });

  test('is compared with what was exported, as far back as there are links', () => {
    const links = six.slice(1).map((link) => (link.seq === 3 ? { ...link, entry: null } : link));
    expect(verify(links, six.map(exportOf))).toMatchObject({ misfit: null, compared: 5, older: 1 });
  });

  const withStatement = (details: object) => {
    const stated = { ...entry(6, 'audit.prune', details), at };
    return chainOf([...five.map(({ entry: found }) => found as ChainedEntry), stated]);
  };
  const without = (links: readonly ChainLink[], seq: number) =>
    links.map((link) => (link.seq === seq ? { ...link, entry: null } : link));

  test.each([
    ['an instant before the entry', { before: '2029-12-31T00:00:00.000Z', through: 5 }],
    ['another action', { action: 'logout', through: 5 }],
  ])('does not excuse a removed entry of the copy with %s', (_, details) => {
    const links = withStatement(details);
    const problem = 'the exported entry 3 is missing, and no entry audit.prune covers it';
    expect(verify(without(links, 3), links.map(exportOf)).misfit).toEqual({ seq: 3, entry: 3, problem });
    expect(verify(links.slice(3), links.map(exportOf)).misfit).toMatchObject({ entry: 1 });
  });

  test.each([
    ['itself', { before: '2030-06-01T00:00:00.000Z', through: 6 }],
    ['later entries', { before: '2030-06-01T00:00:00.000Z', through: 9_999 }],
    ['the future', { before: '2031-06-01T00:00:00.000Z', through: 3 }],
  ])('is not excused by a statement about %s', (_, details) => {
    expect(verify(without(withStatement(details), 3)).misfit?.seq).toBe(3);
  });
});

test('a copy with two lines of one entry must have equal ones', () => {
  const again = chainOf([1, 2, 3].map((id) => entry(id, id === 2 ? 'logout' : 'login')));
  const copy = [...five.slice(0, 3), ...again].map(exportOf);
  expect(verify(five, [...copy.slice(0, 3), ...copy.slice(0, 3)]).misfit).toBeNull();
  expect(verify(five, copy).misfit).toMatchObject({ seq: 2 });
  expect(verify(again, copy).misfit).toMatchObject({ seq: 2 });
});
