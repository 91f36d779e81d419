import { expect, test } from 'vitest';
import { sanitizeForMessage } from '../../../src/api/http/sanitize-for-message.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';

const refusal = 'The e-mail address or password is wrong.';
const clean = (text: string, ...secrets: readonly string[]) =>
  sanitizeForMessage(
    text,
    secrets.map((secret) => new Secret(secret)),
    200,
  );

test.each(['mail', 'e', 'password', 'pass', 'address or'.slice(0, 7)])(
  'a text is withheld rather than cut, where "%s" of it is the secret',
  (secret) => {
    expect(clean(refusal, secret)).toBe('[withheld: has a secret]');
    expect(clean(refusal, secret, 'cpu_0123456789abcdef')).toBe('[withheld: has a secret]');
  },
);

test('a text without the secret stays whole', () => {
  expect(clean(refusal, 'hunter2', 'Mail')).toBe(refusal);
});

test.each([
  ['hunter2', 'use "xhunter2y"', '[withheld: has a secret]'],
  ['correcthorse', 'your password correcthorse', '[withheld: has a secret]'],
  ['correct horse 7', 'your password "correct horse 7"', 'your password "[secret]"'],
  ['cpn_abc123def', 'the key xcpn_abc123defx', 'the key x[secret]x'],
])('%s never shows', (secret, text, expected) => {
  expect(clean(text, secret)).toBe(expected);
});

test.each(['cpn_', 'cpp_', 'cps_', 'cpt_', 'cpu_'])(
  'a token that begins with %s never shows, also if this host does not hold it',
  (kind) => {
    expect(clean(`no user of "${kind}0123456789abcdef"`)).toBe(`no user of "${kind}[secret]"`);
  },
);

test('of two secrets, one within the other, nothing is left', () => {
  for (const secrets of [
    ['cpn_abc123def', 'cpn_abc123def-456'],
    ['cpn_abc123def-456', 'cpn_abc123def'],
  ])
    expect(clean('the key cpn_abc123def-456 or cpn_abc123def', ...secrets)).toBe('the key [secret] or [secret]');
});
