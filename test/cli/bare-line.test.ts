import { afterAll, beforeAll, expect, test, vi } from 'vitest';

vi.mock('yargs', () => {
  throw new Error('yargs is loaded');
});

// The files of a project share loaded modules, and another file may have loaded yargs.
let readCommandLine: typeof import('../../src/cli/program.ts').readCommandLine;
beforeAll(async () => {
  vi.resetModules();
  ({ readCommandLine } = await import('../../src/cli/program.ts'));
});
afterAll(() => void vi.resetModules());

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
    await expect(performed).rejects.toThrow('mocking a module');
  },
);
