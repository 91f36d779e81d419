import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { comparePeerIds } from '../../../src/core/map/model.ts';
import { assignLabels, chooseLabels, keepLabels, nameOnce } from '../../../src/core/names/hosts-label.ts';
import { toLabel } from '../../../src/core/names/label.ts';

const label = (name: string) => chooseLabels([{ id: 7, name }], 'peer')[0];

/** Names that are often alike once they are labels, and ids of both kinds. */
const alike = fc.oneof(
  fc.constantFrom('a', 'A', 'a-2', 'a.2', '', '💻', 'x'.repeat(70)),
  fc.string({ unit: 'binary' }),
);
const ids = fc.oneof(fc.nat(), fc.string({ minLength: 1, maxLength: 64 }));
const lists = fc.uniqueArray(fc.record({ id: ids, name: alike }), { selector: ({ id }) => id, maxLength: 30 });

describe('a label', () => {
  it.each([
    ['edge-1', 'edge-1'],
    ['Edge 1', 'edge-1'],
    ['Zoë’s laptop 💻', 'zo-s-laptop'],
    ['db.example.net', 'db-example-net'],
    ['one\ntwo 10.0.0.1 bank.example', 'one-two-10-0-0-1-bank-example'],
    ['--a--b--', 'a-b'],
    ['__', 'peer-7'],
    ['', 'peer-7'],
    ['面接', 'peer-7'],
    [`${'a'.repeat(62)}.b`, 'a'.repeat(62)],
    ['a'.repeat(120), 'a'.repeat(63)],
  ])('of %j is %s', (name, expected) => {
    expect(label(name)).toBe(expected);
  });

  it('that the service gives goes before that of the name, and an earlier one stays in addition', () => {
    const given = { id: 7, name: '北京-web', label: 'beijing-web' };
    expect(chooseLabels([given], 'peer')).toEqual(['beijing-web']);
    expect(assignLabels([given], [{ peer: 7, labels: ['web'] }])).toEqual([
      { peer: 7, labels: ['beijing-web', 'web'] },
    ]);
    expect(assignLabels([given], [{ peer: 9, labels: ['beijing-web'] }])[0]?.labels).toEqual(['beijing-web-7']);
  });

  it('of two names that are alike is that of the earlier one, and the later one has its id appended', () => {
    const named = (id: number, name: string) => ({ id, name });
    const three = [named(1, 'Web'), named(2, 'web'), named(3, 'web-2')];
    expect(chooseLabels(three, 'peer')).toEqual(['web', 'web-2', 'web-2-3']);
    const long = 'a'.repeat(63);
    expect(chooseLabels([named(1, long), named(22, long)], 'peer')[1]).toBe(`${'a'.repeat(60)}-22`);
  });

  it('is one that a resolver takes, and of one peer alone, whatever the names are', () => {
    fc.assert(
      fc.property(lists, (named) => {
        const labels = chooseLabels(named, 'peer');
        for (const each of labels) expect(each).toMatch(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);
        expect(new Set(labels).size).toBe(named.length);
      }),
    );
  });

  it('stays the same when a peer is added', () => {
    fc.assert(
      fc.property(lists, fc.nat(), (named, count) => {
        const some = named.slice(0, count % (named.length + 1));
        expect(chooseLabels(some, 'peer')).toEqual(chooseLabels(named, 'peer').slice(0, some.length));
      }),
    );
  });
});

const named = (id: number, name: string) => ({ id, name });
const held = (peer: number, ...labels: string[]) => ({ peer, labels });

describe('a label that a peer has had', () => {
  it('is that of its id, whichever peer is given the name later', () => {
    const before = assignLabels([named(7, 'db'), named(9, 'web')], []);
    expect(before).toEqual([held(7, 'db'), held(9, 'web')]);
    // A service swaps them, in one step or in two.
    expect(assignLabels([named(7, 'web'), named(9, 'db')], before)).toEqual([
      held(7, 'web-7', 'db'),
      held(9, 'db-9', 'web'),
    ]);
    const moved = assignLabels([named(7, 'old'), named(9, 'web')], before);
    expect(assignLabels([named(7, 'old'), named(9, 'db')], moved)).toEqual([
      held(7, 'old', 'db'),
      held(9, 'db-9', 'web'),
    ]);
    // The lower id comes too late as well.
    expect(assignLabels([named(1, 'db'), named(7, 'db')], before)).toEqual([held(1, 'db-1'), held(7, 'db')]);
  });

  it('stays with it through renames, up to eight of them', () => {
    let labels = assignLabels([named(7, 'n0')], []);
    for (let count = 1; count < 12; count += 1) labels = assignLabels([named(7, `n${count}`)], labels);
    expect(labels).toEqual([held(7, 'n7', 'n6', 'n5', 'n4', 'n3', 'n2', 'n1', 'n0')]);
    expect(assignLabels([named(7, 'n3')], labels)[0]?.labels.slice(0, 3)).toEqual(['n3', 'n7', 'n6']);
  });

  it('is free again once the peer is listed no more, and not while it is only left out of use', () => {
    const known = { peers: [named(7, 'db'), named(9, 'web')] };
    const without = { peers: [named(9, 'db')] };
    expect(keepLabels([], { known, listed: without, used: without })).toEqual([held(9, 'db', 'web')]);
    const listed = { peers: [named(7, 'db'), named(9, 'db')] };
    expect(keepLabels([], { known, listed, used: without })).toEqual([held(9, 'db-9', 'web'), held(7, 'db')]);
  });

  it('is the same as without any, where there are none, and is never that of two peers', () => {
    fc.assert(
      fc.property(lists, lists, (first, second) => {
        const before = assignLabels(first, []);
        const sorted = first.toSorted((a, b) => comparePeerIds(a.id, b.id));
        expect(before.map(({ labels }) => labels)).toEqual(chooseLabels(sorted, 'peer').map((each) => [each]));
        const after = keepLabels(before, {
          known: { peers: first },
          listed: { peers: second },
          used: { peers: second },
        });
        const all = after.flatMap(({ labels }) => labels);
        expect(new Set(all).size).toBe(all.length);
        for (const { peer, labels } of before) {
          const kept = after.find((each) => each.peer === peer);
          if (kept) expect(kept.labels).toEqual(expect.arrayContaining([...labels]));
        }
      }),
    );
  });
});

it('a name with a suffix has a label that is free, and is no longer than a name may be', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 120, unit: 'binary' }), fc.nat({ max: 2000 }), (name, count) => {
      if (toLabel(name) === '') return;
      const given = nameOnce(name, (label) => Number(label.split('-').at(-1)) < count);
      expect([...given].length).toBeLessThanOrEqual(120);
      expect(toLabel(given)).toMatch(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);
      expect(Number(toLabel(given).split('-').at(-1))).toBe(Math.max(2, count));
    }),
  );
});

it('a name that is taken keeps its spelling before the suffix, where that is still a name with this label', () => {
  const nameSecond = (name: string) => nameOnce(name, () => false);
  expect(nameSecond('Web Server')).toBe('Web Server-2');
  expect(nameSecond('x'.repeat(70))).toBe(`${'x'.repeat(61)}-2`);
  const padded = (length: number) => `${' '.repeat(length - 1)}x`;
  expect(nameSecond(padded(118))).toBe(`${padded(118)}-2`);
  expect(nameSecond(padded(119))).toBe('x-2');
});

it('a label with the id appended that is taken too gets a number', () => {
  const named = [
    { id: 1, name: 'web' },
    { id: 2, name: 'web-4' },
    { id: 3, name: 'web-4-2' },
    { id: 4, name: 'web' },
    { id: '4!', name: 'web' },
  ];
  expect(chooseLabels(named, 'peer')).toEqual(['web', 'web-4', 'web-4-2', 'web-4-3', 'web-4-4']);
});
