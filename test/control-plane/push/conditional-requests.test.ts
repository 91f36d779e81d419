import { expect, test } from 'vitest';
import { counted, countStatements } from '../../../scripts/measure/service/counted-statements.ts';
import { enroll, quiet, startPlane } from '../harness.ts';
import { makeOffice, tagged } from './long-poll.ts';

countStatements();

/** A control plane that does nothing but answer: what it writes by itself would be counted too. */
const startQuiet = () => startPlane({ healthTimes: quiet });

/** The least of several counts: a control plane that has just started prunes in the background, and its statements count too. */
async function costOf(ask: () => Promise<unknown>): Promise<number> {
  const costs: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const before = counted.statements;
    await ask();
    costs.push(counted.statements - before);
  }
  return Math.min(...costs);
}

test('a repeated request of a peer costs one query of its network, and is refused once the peer is removed', async () => {
  const plane = await startQuiet();
  const token = await plane.signIn('owner');
  const { network, peer, peerToken } = await makeOffice({ plane, token });
  const ask = (named: string) =>
    plane.call('GET', `/api/networks/${network}`, { token: peerToken, headers: { 'if-none-match': named } });
  const known = await tagged(plane, network, '"2"');
  expect((await ask(known)).status).toBe(304);
  expect(await costOf(() => ask(known))).toBe(1);
  expect((await plane.call('GET', `/api/networks/${network + 1}`, { token: peerToken })).status).toBe(404);
  await plane.call('DELETE', `/api/networks/${network}/peers/${peer}`, { token });
  for (const named of [known, '"3"', '"9"']) expect((await ask(named)).status).toBe(401);
});

test('an enrolment costs the database the same, however many were there before', async () => {
  const plane = await startQuiet();
  const token = await plane.signIn('owner');
  const { key } = await makeOffice({ plane, token });
  let name = 0;
  const enrollNew = async () => expect((await enroll(plane, key, { name: `web-${++name}` })).status).toBe(201);
  const first = await costOf(enrollNew);
  const later = await costOf(enrollNew);
  expect([later, later <= 26]).toEqual([first, true]);
});
