import { describe, expect, it } from 'vitest';
import { diagnosesToJson, diagnosesToText } from '../../../src/cli/output/show-diagnoses.ts';

describe('a check-up', () => {
  const finding = (verdict: 'ok' | 'note' | 'problem') =>
    ({
      subject: 'tools',
      interface: null,
      verdict,
      checked: 'wg',
      found: 'x',
      remedy: verdict === 'ok' ? null : 'fix it',
    }) as const;

  it('is healthy without a problem, notes or not', () => {
    expect(diagnosesToJson([finding('ok'), finding('note')]).healthy).toBe(true);
    expect(diagnosesToJson([finding('ok'), finding('problem')]).healthy).toBe(false);
  });

  it('counts what it hides, and shows it on request', () => {
    const all = [finding('ok'), finding('ok'), finding('note'), finding('problem')];
    const text = diagnosesToText(all, false);
    expect(text).toContain('1 problem in 4 findings; "cpn doctor --all" shows the 2 that passed');
    expect(text.match(/fix it/g)).toHaveLength(2);
    expect(diagnosesToText(all, true)).toMatch(/^ok[\s\S]*1 problem in 4 findings$/);
    expect(diagnosesToText([finding('note')], false)).toContain('no problem in 1 findings');
  });
});
