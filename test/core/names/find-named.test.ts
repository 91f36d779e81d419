import { describe, expect, it } from 'vitest';
import { WrongUsage } from '../../../src/core/errors/index.ts';
import { describeList, findNamed, type Naming } from '../../../src/core/names/find-named.ts';

interface Network {
  readonly link: string;
  readonly id: number;
  readonly name: string;
}

const naming: Naming<Network> = {
  what: 'network',
  ownName: ({ link }) => link,
  names: ({ id, name }) => [String(id), name],
  describe: ({ link, name }) => `${link} (${name})`,
  remedy: 'name one by its interface',
};
const networks: readonly Network[] = [
  { link: 'cpn0', id: 1, name: 'cpn1' },
  { link: 'cpn1', id: 2, name: 'office' },
  { link: 'cpn2', id: 1, name: '2' },
  { link: 'cpn3', id: 4, name: '4' },
];
const find = (named: string) => findNamed(networks, named, naming)?.link ?? null;

describe('a name', () => {
  it.each([
    ['an interface', 'cpn1', 'cpn1'],
    ['a name', 'office', 'cpn1'],
    ['both the id and the name of one', '4', 'cpn3'],
    ['no prefix of one', 'off', null],
    ['no pattern', '*', null],
    ['no other case', 'OFFICE', null],
  ])('is %s', (_, named, link) => expect(find(named)).toBe(link));

  it.each([
    ['the id of two', '1', '"1" matches 2 networks: cpn0 (cpn1), cpn2 (2); name one by its interface'],
    ['the id of one, and the name of another', '2', '"2" matches 2 networks: cpn1 (office), cpn2 (2)'],
  ])('is refused that is %s', (_, named, message) => {
    expect(() => find(named)).toThrow(WrongUsage);
    expect(() => find(named)).toThrow(message);
  });
});

it('a long list names the first 20', () => {
  const many = Array.from({ length: 25 }, (_, at) => ({ link: `cpn${at}`, id: at, name: 'n' }));
  expect(describeList(many, naming)).toMatch(/cpn19 \(n\) and 5 more$/);
  expect(describeList([], naming)).toBe('none');
});
