import { expect, it, onTestFinished, vi } from 'vitest';
import type { PassReport } from '../../../src/app/networks/pass-report.ts';
import { exitCodes } from '../../../src/cli/exit-code.ts';
import { showPass } from '../../../src/cli/output/show-pass.ts';
import { NotConverged, Refused } from '../../../src/core/errors/index.ts';

const showing = { nothing: 'is up to date', exitCode: exitCodes.done, needsSync: true };
const unsynced = new Refused(401, 'reading network 7', 'Unauthenticated', 'join again');
const failure = new NotConverged('cpn0', ['add peer x']);
const report: PassReport = {
  interface: 'cpn0',
  changes: [],
  names: new Map(),
  fileDiff: [],
  unsynced: null,
  failure: null,
};

/** What a pass of one network shows on stdout, and its exit code. */
function show(changes: Partial<PassReport>, json: boolean): { text: string; code: number } {
  const printed: string[] = [];
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push(String(text)) > 0);
  const err = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => [out, err].forEach((spy) => void spy.mockRestore()));
  const code = showPass([{ ...report, ...changes }], { ...showing, json });
  return { text: printed.join('').trim(), code };
}

it.each([
  ['kept the newest map away', { unsynced }, unsynced.message, exitCodes.refused],
  ['stopped the pass', { unsynced, failure }, failure.message, exitCodes.failed],
])('the JSON of a pass tells what %s', (_, changes, error, code) => {
  const shown = show(changes, true);
  expect(JSON.parse(shown.text)).toEqual({ networks: [{ interface: 'cpn0', changes: [], error }] });
  expect(shown.code).toBe(code);
});

it('the JSON of a pass that went well has no error', () => {
  const shown = show({}, true);
  expect(JSON.parse(shown.text)).toEqual({ networks: [{ interface: 'cpn0', changes: [] }] });
  expect(shown.code).toBe(exitCodes.done);
});

it('a host without the newest map is as the last known one wants it, and not as it should be', () => {
  expect(show({ unsynced }, false).text).toContain('cpn0 matches the stored map');
  expect(show({}, false).text).toContain('cpn0 is up to date');
});
