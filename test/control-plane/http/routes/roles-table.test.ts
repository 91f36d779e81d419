import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { rules } from './access-rules.ts';

const page = readFileSync(join(import.meta.dirname, '../../../../docs/control-plane.md'), 'utf8');

/** The operations of each row of the table of roles. */
const rows: Readonly<Record<string, RegExp>> = {
  'read networks, peers, health and events': /^GET \/api\/networks(?!.*enrollment-keys)/,
  'change the own password, make personal tokens, enrol and remove own devices':
    /^(PUT \/api\/auth\/password|POST \/api\/auth\/tokens|.* \/api\/auth\/devices.*|POST .*\/own-devices)$/,
  'make, change and delete networks, keys and peers':
    /^((POST|PATCH|DELETE) \/api\/networks(?!.*(enroll$|own-devices$|report$|paths$|approve$|rules))|GET .*enrollment-keys$)/,
  'preview rules': /^POST .*rules\/preview$/,
  'set rules, tags and approval; approve peers; list, create and remove users; read the audit':
    /^((GET|POST|DELETE) \/api\/users(?!.*link$)|GET \/api\/audit(\/chain)?|PUT .*rules$|POST .*(rules\/confirm|approve)$)/,
  'change the role of a user; create an owner; link a user': /^(PATCH \/api\/users|(PUT|DELETE) .*link$)/,
};

test.each(Object.entries(rows))('the table of roles is right about: %s', (name, operations) => {
  const row =
    page
      .split('\n')
      .find((line) => line.startsWith(`| ${name} |`))
      ?.split(' | ') ?? [];
  const roles = ['owner', 'admin', 'member', 'viewer'].filter((_, at) => row[at + 1]?.startsWith('yes'));
  const meant = Object.entries(rules).filter(([operation]) => operations.test(operation));
  expect(meant).not.toEqual([]);
  expect(meant.map(([operation, rule]) => [operation, rule.roles])).toEqual(
    meant.map(([operation]) => [operation, roles]),
  );
});

test('the table of roles has these rows alone', () => {
  const [, table = ''] = /\| may \| owner .*\n.*\n((?:\|.*\n)+)/.exec(page) ?? [];
  expect(
    table
      .trim()
      .split('\n')
      .map((line) => line.slice(2).split(' | ')[0]),
  ).toEqual(Object.keys(rows));
});
