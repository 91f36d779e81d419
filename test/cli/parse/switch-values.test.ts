import { expect, test } from 'vitest';
import { readCommandLine } from '../../../src/cli/program.ts';

async function read(...flags: string[]): Promise<unknown> {
  let given: unknown;
  await readCommandLine(['set', ...flags], {}, async (_, input) => {
    given = input.choice('direct-paths');
  });
  return given;
}

test.each([
  ...['', '=yes', '=on', '=1', '=true', '=YES'].map((value) => [`--direct-paths${value}`, true]),
  ...['=no', '=off', '=0', '=false'].map((value) => [`--direct-paths${value}`, false]),
  ['--no-direct-paths', false],
])('the switch %s is %s', async (flag, expected) => {
  expect(await read(`${flag}`)).toBe(expected);
});

test.each([
  ['--direct-paths=maybe', '--direct-paths "maybe" is not yes or no'],
  ['--direct-paths=', '--direct-paths "" is not yes or no'],
  ['--no-direct-paths=yes', '--no-direct-paths takes no value'],
])('the switch %s is refused', async (flag, message) => {
  await expect(read(flag)).rejects.toThrow(message);
});
