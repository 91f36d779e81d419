import { expect, test } from 'vitest';
import { readAuditView, toAuditQuery, toCsv, writeAuditView } from '../../src/console/logic/events/audit-view.ts';
import { describeDetails, findNames } from '../../src/console/logic/events/describe-audit.ts';
import type { AuditEntry } from '../../src/contract/audit.ts';

const now = Date.parse('2030-01-02T00:00:00.000Z');

function entry(id: number, fields: Partial<AuditEntry> = {}): AuditEntry {
  return {
    ...{ id, at: '2030-01-01T00:00:00.000Z', action: 'peer.enroll', address: '127.0.0.1', details: {} },
    actor: { kind: 'user', id: 1, name: 'me@example.net' },
    target: { kind: 'peer', id: 7, name: 'web-1' },
    ...fields,
  };
}

test('a view is the same after the URL, and becomes a filter of the API', () => {
  const view = { search: 'Zoë & co', action: 'peer', hours: '24' };
  expect(readAuditView(writeAuditView(view))).toEqual(view);
  expect(toAuditQuery(view, now)).toBe('search=Zo%C3%AB+%26+co&action=peer&since=2030-01-01T00%3A00%3A00.000Z');
  expect(toAuditQuery(readAuditView({ action: '<b>', hours: '13' }), now)).toBe('');
});

test('a spreadsheet gets texts, and no formula of a name that a peer chose', () => {
  const names = ['=HYPERLINK("http://x","y")', '+1', '-1', '@SUM(A1)', '\t=1', ' =1', '＝1', '\u202e=1', 'web, "1"\nx'];
  const csv = toCsv(
    names.map((name, at) => entry(at + 1, { target: { kind: 'peer', id: 7, name } })),
    new Map(),
  );
  const [head, ...rows] = csv.split('\r\n');
  expect(head).toMatch(/^\u{feff}"id","time","actor kind"/u);
  expect(rows[0]).toBe(
    `1,"2030-01-01T00:00:00.000Z","user","me@example.net",1,"peer.enroll","peer","'=HYPERLINK(""http://x"",""y"")",7,"127.0.0.1",""`,
  );
  const targets = rows.slice(1, -2).map((row) => /"peer","(.)/.exec(row)?.[1]);
  expect(targets).toEqual(names.slice(1, -1).map(() => "'"));
  expect(rows.at(-2)).toContain('"web, ""1""\nx"');
  expect(csv.endsWith('\r\n')).toBe(true);
});

test('nor does it get one where it splits a text at another separator, or does not respect the quotes', () => {
  const harmless = ['a;b', 'x - y', 'web-1', '8 = 8', 'a "b" c'];
  const split = [
    "web;=cmd|'/C calc'!A0;x",
    'web\t=1',
    'web\n=1',
    'web; +1',
    'web;"=1',
    'web;"",-1',
    ';;@x',
    ';＝1',
    '",=1',
  ];
  const csv = toCsv(
    [...split, ...harmless].map((name, at) => entry(at + 1, { target: { kind: 'peer', id: 7, name } })),
    new Map(),
  );
  for (const separator of [';', '\t', ',', '|', '\n']) {
    const cells = csv.split(/\r\n|\n/).flatMap((line) => line.split(separator));
    expect(cells.filter((cell) => /^["\s]*[=+\-@＝]/.test(cell))).toEqual([]);
  }
  expect(csv).toContain(`"web;'=cmd|'/C calc'!A0;x"`);
  for (const name of harmless) expect(csv).toContain(`"${name.replaceAll('"', '""')}"`);
});

test('ids of networks have their names, also of one that was deleted', () => {
  const deleted = entry(9, { action: 'network.delete', target: { kind: 'network', id: 4, name: 'lab' } });
  const names = findNames([{ id: 3, name: 'office; role: owner' }], [deleted]);
  expect(describeDetails({ details: { network: 3 } }, names)).toBe('network: "office; role: owner" (3)');
  expect(describeDetails({ details: { network: 4, address: '10.77.0.1' } }, names)).toBe(
    'network: lab (4); address: 10.77.0.1',
  );
  expect(describeDetails({ details: { network: 5, uses: 3 } }, names)).toBe('network: 5; uses: 3');
});
