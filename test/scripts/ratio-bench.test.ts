import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Comparison } from '../../scripts/measure/comparison.ts';
import { benchRatios } from '../../scripts/measure/ratio-bench.ts';
import { recordedPath } from '../../scripts/measure/recorded.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-ratios-'));
  mkdirSync(join(folder, 'scripts/measure'), { recursive: true });
  writeFileSync(join(folder, 'code'), 'first');
  git('init', '--quiet');
  commit();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function git(...args: string[]): string {
  return execFileSync('git', ['-C', folder, ...args], { encoding: 'utf8' }).trim();
}

function commit(): void {
  git('add', '.');
  git('-c', 'user.name=test', '-c', 'user.email=test@example.net', 'commit', '--quiet', '-m', 'code');
}

/** A row whose ratio is this one. */
function row(what: string, ratio: number): Comparison {
  return { what, baseline: 'the tools', unit: 'ms', ours: [ratio * 10], theirs: [10], target: null };
}

/** Subjects whose ratios are these in their first measurement, their second, and so on. */
async function bench(argv: string[], attempts: Readonly<Record<string, readonly Readonly<Record<string, number>>[]>>) {
  const output: string[] = [];
  const counts: Record<string, number> = {};
  const subjects = Object.fromEntries(
    Object.entries(attempts).map(([name, ratios]) => [
      name,
      async () => {
        const attempt = counts[name] ?? 0;
        counts[name] = attempt + 1;
        return Object.entries(ratios[attempt] ?? {}).map(([what, ratio]) => row(what, ratio));
      },
    ]),
  );
  const status = await benchRatios(argv, { subjects, folder, write: (text) => void output.push(text) });
  return { status, output: output.join(''), counts };
}

const recorded = { start: [{ version: 1, status: 2 }], join: [{ join: 4 }] };

describe('scripts/bench check', () => {
  beforeEach(async () => {
    expect((await bench(['record'], recorded)).status).toBe(0);
  });

  test('passes a row that is at most 25 % worse than recorded', async () => {
    const { status, output, counts } = await bench(['check'], {
      start: [{ version: 1.25, status: 1 }],
      join: [{ join: 4 }],
    });
    expect(status).toBe(0);
    expect(output).toContain('| start: version, against the tools | 1.00 | 1.25 | +25 % |');
    expect(output).toContain('| start: status, against the tools | 2.00 | 1.00 | −50 % |');
    expect(output).toContain('3 ratios kept');
    expect(counts).toEqual({ start: 1, join: 1 });
  });

  test('fails on a row that is worse in both attempts, and names it with both figures', async () => {
    const { status, output, counts } = await bench(['check'], {
      start: [
        { version: 1, status: 3 },
        { version: 1, status: 2.6 },
      ],
      join: [{ join: 4 }],
    });
    expect(status).toBe(1);
    expect(output).toMatch(/in the first attempt.*\n {2}start: status.*now 3\.00/);
    const [, failures] = output.split('lost more than 25 % in both attempts');
    const loss = '2.00 (20.0 by 10.0 ms), now 2.60 (26.0 by 10.0 ms), +30 %; recorded at';
    expect(failures).toContain(`  start: status, against the tools: ${loss} ${git('rev-parse', '--short=10', 'HEAD')}`);
    expect(failures).not.toContain('version');
    expect(counts).toEqual({ start: 2, join: 1 });
  });

  test('measures a subject a second time, and passes what is within the limit then', async () => {
    const { status, output, counts } = await bench(['check'], {
      start: [
        { version: 3, status: 2 },
        { version: 1.1, status: 9 },
      ],
      join: [{ join: 4 }],
    });
    expect(status).toBe(0);
    expect(output).toContain('| start: version, against the tools | 1.00 | 1.10 | +10 % |');
    expect(output).toContain('| start: status, against the tools | 2.00 | 2.00 | +0 % |');
    expect(counts).toEqual({ start: 2, join: 1 });
  });

  test('fails on a row that is not recorded and on one that is not measured, and prints the remedy', async () => {
    const { status, output } = await bench(['check'], { start: [{ version: 1, explain: 2 }], join: [{ join: 4 }] });
    expect(status).toBe(1);
    expect(output).toMatch(/not recorded; add it with scripts\/bench record SUBJECT:\n {2}start: explain/);
    expect(output).toMatch(/not measured; delete it from scripts\/measure\/recorded\.json.*:\n {2}start: status/);
  });

  test('fails on a ratio that is no number', async () => {
    const nothing = [{ version: Number.NaN, status: 2 }];
    const { status } = await bench(['check', 'start'], { start: [...nothing, ...nothing] });
    expect(status).toBe(1);
  });

  test('checks the named subject alone', async () => {
    const { status, output } = await bench(['check', 'join'], { start: [], join: [{ join: 5 }] });
    expect([status, output.includes('1 ratios kept')]).toEqual([0, true]);
  });

  test('warns where the ratios are of another machine', async () => {
    const file = join(folder, recordedPath);
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/Node [0-9.]+/g, 'Node 1.0.0'));
    const { status, output } = await bench(['check'], recorded);
    expect([status, output.includes('recorded on another machine')]).toEqual([0, true]);
  });
});

describe('scripts/bench record', () => {
  test('writes rows with figures, commit, day and machine', async () => {
    await bench(['record'], recorded);
    const rows = JSON.parse(readFileSync(join(folder, recordedPath), 'utf8'));
    expect(rows).toHaveLength(3);
    expect(rows[1]).toEqual({
      ...{
        subject: 'start',
        what: 'status',
        baseline: 'the tools',
        unit: 'ms',
        ratio: 2,
        median: 20,
        baselineMedian: 10,
      },
      commit: git('rev-parse', '--short=10', 'HEAD'),
      date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      machine: expect.stringMatching(/^\d+ × .+, Node \d+/),
    });
  });

  test('refuses files that are not committed, apart from its own, unless the caller allows them', async () => {
    await bench(['record'], recorded);
    expect((await bench(['record'], recorded)).status).toBe(0);
    writeFileSync(join(folder, 'code'), 'second');
    const refused = await bench(['record'], recorded);
    expect([refused.status, refused.counts]).toEqual([1, {}]);
    expect(refused.output).toMatch(/commit these changes first.*\n M code/);
    expect((await bench(['record', '--uncommitted'], recorded)).status).toBe(0);
    expect(readFileSync(join(folder, recordedPath), 'utf8')).toContain('with uncommitted changes');
  });

  test('replaces the rows of the named subject alone, and drops those of a subject that is gone', async () => {
    await bench(['record'], { ...recorded, old: [{ old: 1 }] });
    await bench(['record', 'start'], { start: [{ version: 7 }], join: [] });
    const rows = JSON.parse(readFileSync(join(folder, recordedPath), 'utf8'));
    expect(rows.map(({ what, ratio }: { what: string; ratio: number }) => [what, ratio])).toEqual([
      ['version', 7],
      ['join', 4],
    ]);
  });
});

test.each([[['check', 'nonsense']], [['record', 'nonsense']], [['check', '--uncommitted']]])(
  'measures nothing for %j',
  async (argv) => {
    const { status, counts } = await bench(argv, recorded);
    expect([status, counts]).toEqual([2, {}]);
  },
);
