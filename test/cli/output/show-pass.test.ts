import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { PassReport } from '../../../src/app/networks/pass-report.ts';
import { exitCodes } from '../../../src/cli/exit-code.ts';
import { showPass } from '../../../src/cli/output/show-pass.ts';
import { NotConverged, Refused, Unreachable } from '../../../src/core/errors/index.ts';

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

describe('the result of several passes', () => {
  const said = { stdout: '', stderr: '' };
  beforeEach(() => {
    for (const name of ['stdout', 'stderr'] as const) {
      said[name] = '';
      vi.spyOn(process[name], 'write').mockImplementation((text) => {
        said[name] += String(text);
        return true;
      });
    }
  });
  afterEach(() => vi.restoreAllMocks());

  const change = {
    action: 'add',
    kind: 'route',
    target: '10.0.0.0/8',
    before: null,
    after: null,
    reason: 'x',
  } as never;
  const pass = (link: string, fields: object = {}) =>
    ({
      interface: link,
      changes: [],
      names: new Map(),
      fileDiff: [],
      unsynced: null,
      failure: null,
      ...fields,
    }) as never;
  const planned = { json: false, nothing: 'is up to date', exitCode: 3 };

  it('has the exit code of changes where one of them has some, and that of the first failure before it', () => {
    expect(showPass([pass('cpn0'), pass('cpn1', { changes: [change] })], planned)).toBe(3);
    expect(showPass([pass('cpn0'), pass('cpn1')], planned)).toBe(0);
    const silent = new Unreachable('x', 'silent', { delivered: false, heard: false, retryAfterMs: null });
    const failures = [
      pass('cpn0', { changes: [change], failure: silent }),
      pass('cpn1', { failure: new NotConverged('cpn1', []) }),
    ];
    expect(showPass(failures, planned)).toBe(5);
    expect(showPass([pass('cpn0', { unsynced: silent })], planned)).toBe(0);
    expect(showPass([], planned)).toBe(0);
    expect(said.stderr).toContain('no network is joined');
  });

  it('shows what a failed pass has changed, and does not call it up to date', () => {
    const failure = new NotConverged('cpn0', ['x']);
    showPass([pass('cpn0', { changes: [change], failure }), pass('cpn1', { failure }), pass('cpn2')], planned);
    expect(said.stdout).toBe('cpn0\n  + route 10.0.0.0/8  (x)\ncpn2 is up to date\n');
  });
});
