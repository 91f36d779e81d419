import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type * as program from '../../../src/cli/program.ts';

// A file before this one may have loaded the program, with yargs.
let readCommandLine: typeof program.readCommandLine;
beforeAll(async () => {
  vi.resetModules();
  vi.doMock('yargs', () => {
    throw new Error('yargs is loaded');
  });
  ({ readCommandLine } = await import('../../../src/cli/program.ts'));
});
afterAll(() => {
  vi.doUnmock('yargs');
  vi.resetModules();
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
