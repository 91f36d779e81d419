import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import * as context from '../../../src/cli/context.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { showJoin, suggestNext } from '../../../src/cli/output/show-join.ts';
import { joinedTo, mapAt } from '../../app/joined-state.ts';
import { dialled, peer } from '../../core/samples.ts';

it.each([
  ['a connector without an endpoint', 'connector', false, true],
  ['a connector with one', 'connector', true, false],
  ['another host', 'origin', false, false],
] as const)('the join of %s', (_, type, hasEndpoint, isWarned) => {
  const written: string[] = [];
  for (const stream of [process.stdout, process.stderr]) {
    const spy = vi.spyOn(stream, 'write').mockImplementation((text) => written.push(String(text)) > 0);
    onTestFinished(() => spy.mockRestore());
  }
  const { peers, ...map } = mapAt('"1"', []);
  const endpoint = hasEndpoint ? dialled(1) : null;
  const joined = joinedTo({ ...map, peers: peers.map((each) => ({ ...each, type, endpoint })) });
  const state = { ...joined, enrollment: { ...joined.enrollment, type } };
  for (const json of [false, true]) {
    written.length = 0;
    showJoin({ state, handshake: null, answered: null, secretMismatches: [], unloaded: null, savedProxy: null }, json);
    expect(written.join('').includes('cpn set cpn0 --endpoint HOST:PORT')).toBe(isWarned);
  }
});

describe('the result of a join', () => {
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

  const state = joinedTo(mapAt('"1"', [peer(2)]));
  const report = {
    ...{ state, handshake: true, answered: null, secretMismatches: [] },
    unloaded: null,
    savedProxy: null,
  };
  const mismatch = { difference: 'missing_here', peers: ['edge-1'] } as const;

  it('says who answered, or why no peer did', () => {
    const text = (fields: object) => {
      said.stderr = '';
      showJoin({ ...report, ...fields }, false);
      return said.stderr;
    };
    expect(text({ answered: peer(2) })).toBe('peer-2 answered\n');
    expect(text({})).toBe('a peer answered\n');
    expect(text({ handshake: null })).toContain('no peer of this network has an endpoint to dial yet');
    expect(text({ handshake: false })).toContain('no peer answered yet; peers add this host at their next pass');
    expect(text({ handshake: false, secretMismatches: [mismatch] })).toMatch(/no peer answered yet: .*secret/);
    const named = { ...state, enrollment: { ...state.enrollment, name: 'web' } };
    expect(text({ state: named })).toContain('the name web is taken in this network; this host is peer-1');
  });

  it('has in JSON whether there was a handshake, and each mismatch of secrets as a warning', () => {
    showJoin({ ...report, handshake: false, secretMismatches: [mismatch, mismatch] }, true);
    expect(JSON.parse(said.stdout)).toMatchObject({ interface: 'cpn0', handshake: false });
    expect(said.stderr.match(/warning:/g)).toHaveLength(2);
  });

  it('suggests the daemon only where none runs', async () => {
    const input = new Input({}, {}, {});
    const next = async (isKept: boolean, alive: boolean | null, answered: object | null = null) => {
      vi.spyOn(context, 'readDaemon').mockResolvedValue(alive === null ? null : { pid: 7, alive });
      return (await suggestNext({ ...report, answered } as never, isKept, input)).includes('cpn run');
    };
    expect([await next(false, null), await next(false, false)]).toEqual([true, true]);
    expect([await next(false, true), await next(true, null)]).toEqual([false, false]);
    expect(await suggestNext({ ...report, answered: peer(2) } as never, true, input)).toContain('ping 10.77.0.2');
    expect(await suggestNext(report, true, input)).toContain('cpn wait cpn0 --for handshake');
  });
});
