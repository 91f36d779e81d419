import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Comparison } from '../../scripts/measure/comparison.ts';
import { benchFigures } from '../../scripts/measure/figure-bench.ts';
import { compareFigures, figuresOf, isLost } from '../../scripts/measure/figures.ts';
import { readRecorded, recordedPath } from '../../scripts/measure/recorded.ts';

const document = '# Performance\n\n| a | table |\n|---|---|\n| of | others |\n\n## History\n\nA text.\n';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-figures-'));
  mkdirSync(join(folder, 'docs'));
  writeFileSync(join(folder, recordedPath), document);
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

/** Subjects whose ratios are these in their first measurement, their second, and so on; `slow` is not a quick one. */
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
  const quick = Object.keys(subjects).filter((name) => name !== 'slow');
  const status = await benchFigures(argv, { subjects, quick, folder, write: (text) => void output.push(text) });
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
    expect(output).toContain('3 figures kept');
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
    expect(output).toMatch(/not measured; delete it from docs\/performance\.md.*:\n {2}start: status/);
  });

  test('fails on a figure that is no number', async () => {
    const nothing = [{ version: Number.NaN, status: 2 }];
    const { status } = await bench(['check', 'start'], { start: [...nothing, ...nothing] });
    expect(status).toBe(1);
  });

  test('checks the named subject alone', async () => {
    const { status, output } = await bench(['check', 'join'], { start: [], join: [{ join: 5 }] });
    expect([status, output.includes('1 figures kept')]).toEqual([0, true]);
  });

  test('warns where the figures are of another machine', async () => {
    const file = join(folder, recordedPath);
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/Node [0-9.]+/g, 'Node 1.0.0'));
    const { status, output } = await bench(['check'], recorded);
    expect([status, output.includes('recorded on another machine')]).toEqual([0, true]);
  });
});

describe('scripts/bench record', () => {
  test('writes rows with figures, commit, day and machine after the text of the section', async () => {
    await bench(['record'], recorded);
    const text = readFileSync(join(folder, recordedPath), 'utf8');
    expect(text.startsWith(`${document}\n| subject | what | against | figure |`)).toBe(true);
    expect(text.split('\n').slice(-4)).toEqual([
      expect.stringMatching(
        /^\| start \| version \| the tools \| 1 \| 10\.0 by 10\.0 ms \| [0-9a-f]{10} \| [0-9-]{10} \| /,
      ),
      expect.stringMatching(/^\| start \| status \| the tools \| 2 \| 20\.0 by 10\.0 ms \| /),
      expect.stringMatching(/^\| join \| join \| the tools \| 4 \| .*Node \d+\.\d+\.\d+ \|$/),
      '',
    ]);
    const rows = readRecorded(folder);
    expect(rows).toHaveLength(3);
    expect(rows[1]).toEqual({
      ...{ subject: 'start', what: 'status', baseline: 'the tools', figure: 2, measured: '20.0 by 10.0 ms' },
      commit: git('rev-parse', '--short=10', 'HEAD'),
      date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      machine: expect.stringMatching(/^\d+ × .+, Node \d+/),
    });
  });

  test('keeps the figures of former commits, the newest last, and one for each commit', async () => {
    await bench(['record'], recorded);
    writeFileSync(join(folder, 'code'), 'second');
    commit();
    const second = { start: [{ version: 3, status: 2 }], join: [{ join: 4 }] };
    await bench(['record', 'start'], second);
    await bench(['record', 'start'], { ...second, start: [{ version: 2, status: 2 }] });
    expect(readRecorded(folder).map(({ what, figure }) => [what, figure])).toEqual([
      ['version', 1],
      ['version', 2],
      ['status', 2],
      ['status', 2],
      ['join', 4],
    ]);
    const { output } = await bench(['check', 'start'], { ...second, start: [{ version: 2.2, status: 2 }] });
    expect(output).toContain('| start: version, against the tools | 2.00 | 2.20 | +10 % |');
  });

  test('measures a subject that is not quick where it is named', async () => {
    const slow = { ...recorded, slow: [{ slow: 9 }] };
    expect((await bench(['record'], slow)).counts).toEqual({ start: 1, join: 1 });
    expect((await bench(['record', 'slow'], slow)).counts).toEqual({ slow: 1 });
    expect((await bench(['check'], slow)).output).toContain('3 figures kept');
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

  test('drops the rows that are gone from a named subject, and those of a subject that is gone', async () => {
    await bench(['record'], { ...recorded, old: [{ old: 1 }] });
    await bench(['record', 'start'], { start: [{ version: 7 }], join: [] });
    expect(readRecorded(folder).map(({ what, figure }) => [what, figure])).toEqual([
      ['version', 7],
      ['join', 4],
    ]);
  });
});

test('a row without a baseline is its own median, with the share of its target', () => {
  const target = { share: 0.75, atMost: 2, text: 'p75 < 2 ms' };
  const own = { what: 'a change', baseline: '', unit: 'ms', ours: [1, 2, 3, 40], theirs: [], target } as const;
  expect(figuresOf('change', [own])).toEqual([
    { subject: 'change', what: 'a change', baseline: '', figure: 2.5, measured: '2.50 ms; p75 < 2 ms: 3.00' },
  ]);
});

test('a figure that stays 0 is kept', () => {
  const none = { subject: 'live', what: 'packets lost', baseline: '', figure: 0, measured: '0 packets' };
  const before = { ...none, commit: 'abc', date: '2026-11-23', machine: 'one' };
  expect(compareFigures([before], [none]).map(isLost)).toEqual([false]);
  expect(compareFigures([before], [{ ...none, figure: 1 }]).map(isLost)).toEqual([true]);
});

test.each([[['check', 'nonsense']], [['record', 'nonsense']], [['check', '--uncommitted']]])(
  'measures nothing for %j',
  async (argv) => {
    const { status, counts } = await bench(argv, recorded);
    expect([status, counts]).toEqual([2, {}]);
  },
);
