import { describe, expect, it } from 'vitest';
import { describeProblems } from '../../../src/core/doctor/describe-problems.ts';
import { isProblem, type ProblemCode, problem } from '../../../src/core/problems/problem.ts';
import { samples } from '../problems/samples.ts';

const names = { link: 'cpn0', network: 'office' };
const facts = { interface: 'cpn0' };
const silent = problem('peer-silent', { ...facts, peer: 'edge', address: '10.77.0.1' });
const about = (text: string, findings: ReturnType<typeof describeProblems>) =>
  findings.filter(({ checked }) => checked.startsWith(text)).map(({ verdict, found }) => [verdict, found]);

describe('handshakes', () => {
  const handshakes = (peers: number, heard: number, ...problems: (typeof silent)[]) =>
    about('handshakes of cpn0', describeProblems(problems, names, { peers, heard }));

  it('are fine if any completed, a note if none did, and nothing without peers', () => {
    expect(handshakes(3, 1)).toEqual([['ok', '1 of 3 peers completed a handshake']]);
    expect(handshakes(3, 0)).toEqual([['note', '0 of 3 peers completed a handshake']]);
    expect(handshakes(0, 0)).toEqual([]);
  });

  it('are the problem of each peer that does not answer, and nothing else', () => {
    expect(handshakes(3, 2, silent, silent)).toEqual(Array(2).fill(['problem', 'edge does not answer']));
    expect(handshakes(3, 0, silent)).toEqual([['problem', 'edge does not answer']]);
  });
});

it('a note stays a note, and a problem without a remedy refers to the status', () => {
  const note = problem('subnet-inside', { ...facts, subnet: '10.77.0.0/25', on: 'eth1' });
  const listed = describeProblems([note], names, { peers: 1, heard: 1 });
  expect(listed.find(({ checked }) => checked === 'the range of office')).toMatchObject({
    verdict: 'note',
    remedy: null,
  });
  const unread = problem('peer-expired', { ...facts, expires_at: '2030', network: 7, peer: 3 });
  expect(describeProblems([{ ...unread, remedy: null }], names, { peers: 1, heard: 1 })).toContainEqual(
    expect.objectContaining({ verdict: 'problem', remedy: 'see cpn status' }),
  );
});

/** Other checks of `cpn doctor` report these. */
const elsewhere: readonly ProblemCode[] = [
  ...(['state-unreadable', 'rules-not-loaded', 'tunnel-bypassed', 'packets-dropped', 'rules-unread'] as const),
  // It queries the servers.
  ...(['domain-silent', 'domain-failing'] as const),
];

it.each(Object.keys(samples) as ProblemCode[])('has a finding of %s, if it is a problem', (code) => {
  const found = problem(code, samples[code]);
  const findings = describeProblems([found], names, { peers: 0, heard: 0 });
  const isFound = findings.some(({ verdict }) => verdict === 'problem');
  expect(isFound).toBe(isProblem(found) && !elsewhere.includes(code));
});
