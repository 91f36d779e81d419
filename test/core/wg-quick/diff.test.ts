import { expect, it } from 'vitest';
import { diffConfig } from '../../../src/core/wg-quick/diff.ts';

const secret = 'YAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=';
const one = 'xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=';
const other = 'TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0=';

const file = (own: string, ...peers: string[]) =>
  [`# cpn\n[Interface]\n${own}\n`, ...peers.map((peer) => `\n[Peer]\n${peer}\n`)].join('');

it('the same file has no differences, in another order neither', () => {
  const [first, second] = [`PublicKey = ${one}\nAllowedIPs = 10.0.0.1/32`, `PublicKey = ${other}`];
  expect(diffConfig(file('MTU = 1420', first, second), file('MTU = 1420', second, first))).toEqual([]);
});

it('lines that differ are listed by section', () => {
  const before = file('MTU = 1420', `PublicKey = ${one}\nAllowedIPs = 10.0.0.1/32`, `PublicKey = ${other}`);
  const after = file('MTU = 1380', `PublicKey = ${one}\nAllowedIPs = 10.0.0.2/32`);
  expect(diffConfig(before, after)).toEqual([
    { peer: null, removed: ['MTU = 1420'], added: ['MTU = 1380'] },
    { peer: one, removed: ['AllowedIPs = 10.0.0.1/32'], added: ['AllowedIPs = 10.0.0.2/32'] },
    { peer: other, removed: ['[Peer]', `PublicKey = ${other}`], added: [] },
  ]);
});

it.each([
  `PrivateKey = ${secret}`,
  `privatekey=${secret}`,
  `# PrivateKey = ${secret}`,
  `PostUp = wg set %i private-key <(echo ${secret})`,
  `${secret}`,
  `PrivateKey = ${secret.slice(0, 20)}`,
  `PresharedKey = ${secret.slice(0, 20)}`,
  `presharedkey=${secret}`,
  `PostUp = wg set %i peer ${one} preshared-key <(echo ${secret})`,
])('no line shows a secret: %s', (line) => {
  const [diff] = diffConfig(file(line), file('MTU = 1380'));
  const text = diff?.removed.join('\n') ?? '';
  expect(text).toContain('[secret]');
  for (const part of [secret, secret.slice(0, 20), secret.slice(20, 40)]) expect(text).not.toContain(part);
});

it('the preshared key of a peer is not shown', () => {
  const peer = (key: string) => `PublicKey = ${one}\nPresharedKey = ${key}`;
  expect(diffConfig(file('', peer(secret)), file('', peer(other)))).toEqual([
    { peer: one, removed: ['PresharedKey = [secret]'], added: ['PresharedKey = [secret]'] },
  ]);
});
