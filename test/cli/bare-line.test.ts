import { expect, test, vi } from 'vitest';
import { readCommandLine } from '../../src/cli/program.ts';

vi.mock('yargs', () => {
  throw new Error('yargs is loaded');
});

test.each(['run', 'status', 'join', 'network list'])(
  'a command without anything to read is performed without yargs: %s',
  async (line) => {
    const performed: string[] = [];
    await readCommandLine(line.split(' '), {}, async ({ name }) => {
      performed.push(name);
    });
    expect(performed).toEqual([line]);
  },
);

test.each(['status --json', 'key create', 'statu', 'network', 'help status'])(
  'any other line is read by yargs: %s',
  async (line) => {
    const performed = readCommandLine(line.split(' '), {}, async () => {});
    await expect(performed).rejects.toThrow();
  },
);
