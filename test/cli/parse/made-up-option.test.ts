import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { state } from '../../store/samples.ts';

// Follows "An option of join and set" in CONTRIBUTING: one entry in each of the two tables.
beforeAll(() => {
  vi.resetModules();
  vi.doMock(import('../../../src/core/map/options.ts'), async (original) => {
    const real = await original();
    const optionRules = { ...real.optionRules, madeUp: { kind: 'number', min: 1, max: 9 } };
    return { ...real, optionRules, defaultOptions: { ...real.defaultOptions, madeUp: null } } as typeof real;
  });
  vi.doMock(import('../../../src/cli/parse/host-options.ts'), async (original) => {
    const real = await original();
    const flag = { option: 'madeUp', kind: 'text', summary: 'a made-up option', value: 'N', reset: 'off' };
    (real.optionFlags as Record<string, unknown>)['made-up'] = flag;
    (real.listedOptions as unknown[]).push(['made-up', flag]);
    return real;
  });
});

afterAll(() => {
  vi.doUnmock('../../../src/core/map/options.ts');
  vi.doUnmock('../../../src/cli/parse/host-options.ts');
  vi.resetModules();
});

it('an option in the two tables is one of join, of set, and of the state file', async () => {
  const { Input } = await import('../../../src/cli/input/input.ts');
  const { readOptions } = await import('../../../src/cli/parse/host-options.ts');
  const { changeFlags, readChanges } = await import('../../../src/cli/parse/option-changes.ts');
  const { join } = await import('../../../src/cli/commands/join.ts');
  const { formatState, parseState } = await import('../../../src/store/state/state-file.ts');

  expect(join.flags?.['made-up']).toMatchObject({ summary: 'a made-up option' });
  const read = (given: Record<string, unknown>) => readOptions(new Input(given, join.flags ?? {}, {}), 'origin');
  expect(await read({ 'made-up': '7' })).toMatchObject({ madeUp: 7 });
  expect(await read({})).toMatchObject({ madeUp: null });

  expect(changeFlags['made-up']).toMatchObject({ byDefault: 'unchanged', choices: ['off'] });
  const change = (given: Record<string, unknown>) => readChanges(new Input(given, changeFlags, {}));
  expect((await change({ 'made-up': '7' })).options).toEqual({ madeUp: 7 });
  expect((await change({ 'made-up': 'off' })).options).toEqual({ madeUp: null });
  await expect(change({ 'made-up': '10' })).rejects.toThrow('from 1 to 9');

  const saved = { ...state, options: { ...state.options, madeUp: 7 } };
  expect(parseState(formatState(saved)).options).toMatchObject({ madeUp: 7 });
  expect(parseState(formatState(state)).options).toMatchObject({ madeUp: null });
});
