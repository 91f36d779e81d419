import { describe, expect, test } from 'vitest';
import {
  actionGroups,
  periods,
  readAuditView,
  toAuditQuery,
  toCsv,
  writeAuditView,
} from '../../src/console/logic/events/audit-view.ts';
import {
  describeActor,
  describeDetails,
  describeTarget,
  findNames,
} from '../../src/console/logic/events/describe-audit.ts';
import { linkTo, parseRoute, readQuery } from '../../src/console/logic/page/route.ts';
import { foldText } from '../../src/console/logic/peers/peer-text.ts';
import {
  formatAgo,
  formatExact,
  formatRate,
  formatSeconds,
  inDays,
  splitWords,
  toSentence,
} from '../../src/console/logic/text/format.ts';
import type { AuditEntry } from '../../src/contract/audit.ts';
import { at, later, now } from './samples.ts';

const [minute, hour, day] = [60, 3600, 86_400];

test.each<[number, string]>([
  [0, 'just now'],
  [9, 'just now'],
  [10, '10 s ago'],
  [59, '59 s ago'],
  [minute, '1 min ago'],
  [hour - 1, '59 min ago'],
  [hour, '1 h ago'],
  [2 * day - 1, '47 h ago'],
  [2 * day, '2 days ago'],
  [3 * day - 1, '2 days ago'],
  [-9, 'just now'],
  // The clock of another machine may be ahead.
  [-59, 'just now'],
  [-minute, 'in 1 min'],
  [-hour, 'in 1 h'],
  [-2 * day, 'in 2 days'],
])('an instant %i seconds before now is %s', (seconds, text) => {
  expect(formatAgo(later(-seconds), now)).toBe(text);
  expect(formatAgo(later(-seconds), now + 400)).toBe(text);
});

test.each<[number, string]>([
  [0.4, '0 s'],
  [119.4, '119 s'],
  [120, '2 min'],
  [7199, '120 min'],
  [7200, '2 h'],
  [172_799, '48 h'],
  [172_800, '2 days'],
])('%d seconds are %s', (seconds, text) => expect(formatSeconds(seconds)).toBe(text));

test.each<[number, string]>([
  [0, '0 B/s'],
  [0.4, '0 B/s'],
  [1, '1 B/s'],
  [999, '999 B/s'],
  [99_900, '99.9 kB/s'],
  [100_000, '100 kB/s'],
  [1_000_000, '1.0 MB/s'],
  [1_000_000_000, '1.0 GB/s'],
])('%d bytes a second are %s', (rate, text) => expect(formatRate(rate)).toBe(text));

test.each<[string, string | null]>([
  ['1', later(day)],
  ['0.5', later(day / 2)],
  ['0', at],
  [' 2 ', later(2 * day)],
  ['', null],
  ['  ', null],
  ['soon', null],
  ['Infinity', null],
])('in %j days is %j', (days, instant) => expect(inDays(days, new Date(now))).toBe(instant));

test('a sentence begins with a capital and ends with one mark', () => {
  expect(['the end', 'Is it?', 'Stop!', 'a. b.', 'ß', '', 'östlich'].map(toSentence)).toEqual([
    ...['The end.', 'Is it?', 'Stop!', 'A. b.', 'SS.', '.', 'Östlich.'],
  ]);
});

test('words are separated by blanks, lines and commas', () => {
  expect(splitWords('a b\tc\nd,e, f,,g\r\n')).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
  expect([splitWords(''), splitWords(' , ')]).toEqual([[], []]);
});

test.each(
  [...'øłđðþßæœıħŋ'].map((letter, index) => [
    letter,
    ['o', 'l', 'd', 'd', 'th', 'ss', 'ae', 'oe', 'i', 'h', 'ng'][index],
  ]),
)('a search for %s finds it by %s, in capitals too', (letter, plain) => {
  expect(foldText(`x${letter}y`)).toBe(`x${plain}y`);
  if (letter !== 'ß' && letter !== 'ı') expect(foldText(letter.toUpperCase())).toBe(plain);
});

describe('the part of a URL behind its mark', () => {
  test.each([
    [{ page: 'networks' }, '#/networks'],
    [{ page: 'audit' }, '#/audit'],
    [{ page: 'users' }, '#/users'],
    [{ page: 'account' }, '#/account'],
    [{ page: 'network', network: 7 }, '#/networks/7'],
    [{ page: 'peers', network: 7 }, '#/networks/7/peers'],
    [{ page: 'events', network: 7 }, '#/networks/7/events'],
    [{ page: 'rules', network: 7 }, '#/networks/7/rules'],
    [{ page: 'add-host', network: 7 }, '#/networks/7/add-host'],
    [{ page: 'keys', network: 7 }, '#/networks/7/keys'],
    [{ page: 'peer', network: 7, peer: 31 }, '#/networks/7/peer/31'],
  ] as const)('is of %j: %s', (route, link) => {
    expect(linkTo(route)).toBe(link);
    expect(parseRoute(link)).toEqual(route);
    expect(parseRoute(`${link}?q=a/b`)).toEqual(route);
    expect(linkTo(route, { q: '', sort: '-name' })).toBe(`${link}?sort=-name`);
    expect(readQuery(`${link}?q=a?b&sort=-name`)).toEqual({ q: 'a?b', sort: '-name' });
  });

  test.each([
    ...[
      '#/networks/7/peer',
      '#/networks/7/peer/',
      '#/networks/7/peer/0',
      '#/networks/7/peer/x',
      '#/networks/7/peer/3/4',
    ],
    ...['#/networks/0', '#/networks/-1', '#/networks/1e3', '#/networks/x/peers', '#/networks/1234567890123456'],
    ...['#/networks/7/unknown', '#/networks/7/peers/', '#/users/1', '#/account/x', '#/peer/7', '#/x'],
  ])('is of no page: %s', (hash) => expect(parseRoute(hash)).toEqual({ page: 'unknown' }));
});

describe('the audit', () => {
  const entry = (fields: Partial<AuditEntry> = {}): AuditEntry => ({
    ...{ id: 1, at, action: 'peer.enroll', address: null, details: {} },
    actor: { kind: 'user', id: 1, name: 'me@example.net' },
    target: { kind: 'peer', id: 7, name: 'web-1' },
    ...fields,
  });

  test.each(actionGroups.map(([action]) => action))('is filtered by the group %j', (action) => {
    const view = { search: '', action, hours: '' };
    expect(readAuditView(writeAuditView(view))).toEqual(view);
    expect(toAuditQuery(view, now)).toBe(action === '' ? '' : `action=${action}`);
  });

  test('has the groups and periods that a person chooses from', () => {
    expect(actionGroups.map(([action]) => action)).toEqual([
      '',
      'peer',
      'network',
      'rules',
      'key',
      'user',
      'login',
      'session',
      'token',
      'password',
    ]);
    expect(periods.map(([hours, text]) => [Number(hours), text])).toEqual([
      [0, 'any time'],
      [1, 'the last hour'],
      [24, 'the last 24 hours'],
      [7 * 24, 'the last 7 days'],
      [30 * 24, 'the last 30 days'],
    ]);
  });

  test.each(periods.map(([hours]) => hours))('is filtered by the last %j hours', (hours) => {
    const view = { search: ' a ', action: '', hours };
    expect(readAuditView(writeAuditView(view))).toEqual(view);
    const query = new URLSearchParams(toAuditQuery(view, now));
    expect([query.get('search'), query.get('since')]).toEqual([
      'a',
      hours === '' ? null : later(-Number(hours) * hour),
    ]);
  });

  test('takes a hundred characters to search for, and no more', () => {
    expect(readAuditView({ q: 'a'.repeat(101) }).search).toHaveLength(100);
    expect(toAuditQuery({ search: '  ', action: '', hours: '' }, now)).toBe('');
  });

  test.each<[unknown, string]>([
    [null, 'none'],
    ['', 'none'],
    [[], 'none'],
    [true, 'yes'],
    [false, 'no'],
    [0, '0'],
    ['a b', 'a b'],
    ['a; b', '"a; b"'],
    ['a "b"', '"a \\"b\\""'],
    [['a', 2, null], 'a, 2, none'],
    [{ a_b: 1, c: [true] }, 'a b 1 c yes'],
    ['2030-01-01T00:00:00.000Z', formatExact(at)],
    ['2030-01-01T00:00:00Z', formatExact(at)],
    ['on 2030-01-01T00:00:00.000Z', 'on 2030-01-01T00:00:00.000Z'],
  ])('has the value %j as %s', (value, text) => {
    expect(describeDetails({ details: { a_field: value } })).toBe(`a field: ${text}`);
  });

  test('has the name of a network where a field is one, and of no other number', () => {
    const names = new Map([[3, 'office']]);
    expect(describeDetails({ details: { network: 3, uses: 3, other_network: 3 } }, names)).toBe(
      'network: office (3); uses: 3; other network: 3',
    );
    expect(describeDetails({ details: { network: '3' } }, names)).toBe('network: 3');
  });

  test('has the present name of a network, and of a deleted one its last', () => {
    const named = (id: number | null, name: string | null, kind = 'network') =>
      entry({ target: { kind, id, name } as AuditEntry['target'] });
    const newestFirst = [
      named(3, 'new'),
      named(4, 'last'),
      named(4, 'first'),
      named(5, 'peer', 'peer'),
      named(null, 'x'),
    ];
    expect([...findNames([{ id: 3, name: 'now' }], [...newestFirst, named(6, null)])].toSorted()).toEqual([
      [3, 'now'],
      [4, 'last'],
    ]);
  });

  test.each<[AuditEntry['actor'], string]>([
    [{ kind: 'user', id: 1, name: 'me@example.net' }, 'user me@example.net'],
    [{ kind: 'peer', id: 7, name: null }, 'peer'],
    [{ kind: 'enrollment_key', id: 3, name: 'rack' }, 'enrolment key rack'],
    [{ kind: 'nobody', id: null, name: null }, 'no user'],
  ])('has the actor %j as %s', (actor, text) => expect(describeActor({ actor })).toBe(text));

  test.each<[object, string]>([
    [{ kind: 'network', id: 1, name: 'office' }, 'network office (1)'],
    [{ kind: 'session', id: 0, name: null }, 'session (0)'],
    [{ kind: 'personal_token', id: null, name: 'ci' }, 'personal token ci'],
    [{ kind: 'enrollment_key', id: 2, name: '' }, 'enrolment key (2)'],
  ])('has the target %j as %s', (target, text) => {
    expect(describeTarget({ target: target as AuditEntry['target'] })).toBe(text);
  });

  test('is a row of eleven cells for each entry, empty where there is nothing', () => {
    const [head, row, end] = toCsv([entry({ actor: { kind: 'peer', id: null, name: null } })], new Map()).split('\r\n');
    const columns = 'id,time,actor kind,actor,actor id,action,target kind,target,target id,address,details';
    expect(head).toBe(
      `\u{feff}${columns
        .split(',')
        .map((name) => `"${name}"`)
        .join(',')}`,
    );
    expect([row, end]).toEqual([`1,"${at}","peer",,,"peer.enroll","peer","web-1",7,,""`, '']);
  });
});
