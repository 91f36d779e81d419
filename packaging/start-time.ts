import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { command } from './command.ts';

const rounds = 31;

/**
 * Milliseconds that `cpn --version` of a Debian package takes, and that its Node takes for nothing
 * at all: medians of rounds that take turns, so that a busy machine is as busy for both.
 */
export function measureStart(deb: string): { program: number; node: number } {
  const tree = mkdtempSync(join(tmpdir(), 'cpn-start-'));
  try {
    command(['dpkg-deb', '-x', deb, tree]);
    const argvs = [
      [join(tree, 'usr/bin/cpn'), '--version'],
      [join(tree, 'usr/lib/cpn/node'), '-e', '0'],
    ];
    for (const argv of argvs) time(argv);
    const times = Array.from({ length: rounds }, () => argvs.map(time));
    const [program = 0, node = 0] = argvs.map(
      (_, i) => times.map((round) => round[i] ?? 0).sort((a, b) => a - b)[rounds >> 1],
    );
    return { program, node };
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}

function time([file = '', ...args]: readonly string[]): number {
  const started = performance.now();
  const { status } = spawnSync(file, args);
  if (status !== 0) throw new Error(`${file} ended with ${status}`);
  return performance.now() - started;
}
