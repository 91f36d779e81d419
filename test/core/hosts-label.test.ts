import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseLabels } from '../../src/core/hosts-label.ts';

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

  it('stays the same when somebody comes after', () => {
    fc.assert(
      fc.property(lists, fc.nat(), (named, count) => {
        const some = named.slice(0, count % (named.length + 1));
        expect(chooseLabels(some, 'peer')).toEqual(chooseLabels(named, 'peer').slice(0, some.length));
      }),
    );
  });
});
