import { expect, it, onTestFinished, vi } from 'vitest';
import { showJoin } from '../../../src/cli/output/show-join.ts';
import { joinedTo, mapAt } from '../../app/joined-state.ts';
import { dialled } from '../../core/samples.ts';

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
