import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { command } from '../../packaging/command.ts';
import { buildPackages } from './packages.ts';

/** Where the job runs: in an emulated machine with Debian's kernel, or in a container on this one's. */
export type Kind = 'vm' | 'container';

const guest = join(import.meta.dirname, 'guest');

/** Writes what a host under test runs into a folder: the scripts of {@link guest}, and two versions of the package. */
export function prepareJob(folder: string, work: string): void {
  mkdirSync(folder);
  for (const file of readdirSync(guest)) cpSync(join(guest, file), join(folder, file), { recursive: true });
  writeFileSync(join(folder, 'start-control-plane.sh'), readStart());
  const { old, next } = buildPackages(work);
  // The program of the second host.
  command(['dpkg-deb', '-x', old.file, join(folder, 'far')]);
  renameSync(old.file, join(folder, 'old.deb'));
  renameSync(next.file, join(folder, 'new.deb'));
  writeFileSync(join(folder, 'old-version'), old.version);
  writeFileSync(join(folder, 'new-version'), next.version);
}

/** The commands of docs/control-plane.md that start the control plane after its package is installed, at the address of this host. */
function readStart(): string {
  const page = readFileSync(join(guest, '../../../docs/control-plane.md'), 'utf8');
  const [, block] = /^apt install \.\/cpn_\S+\n(.*?)^```$/ms.exec(page) ?? [];
  if (block === undefined) throw new Error('docs/control-plane.md does not install the package');
  return block.replace('CPN_LISTEN=127.0.0.1:', 'CPN_LISTEN=203.0.113.1:').replace(/^CPN_TRUST_PROXY=.*\n/m, '');
}

/** How a step of the scenario went. */
export interface StepResult {
  readonly step: string;
  readonly ok: boolean;
  readonly ms: number;
  /** The file next to the results that has its output. */
  readonly log: string;
}

/** Something that the host measured. */
interface Figure {
  readonly figure: string;
  readonly value: string;
}

/** The names of all steps, in their order, as the scenario has them. */
export function listSteps(kind: Kind): string[] {
  const text = readFileSync(join(guest, `scenario-${kind}.sh`), 'utf8');
  return [...text.matchAll(/^ {2}(?:step|cut_during) '([^']+)'/gm)].map(([, name = '']) => name);
}

/** Reads what the host left: a JSON object a line. */
export function readResults(folder: string): { steps: StepResult[]; figures: Figure[] } {
  const file = readdirSync(folder).includes('results.jsonl') ? readFileSync(join(folder, 'results.jsonl'), 'utf8') : '';
  const lines = file
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as StepResult | Figure);
  return {
    steps: lines.filter((line) => 'step' in line),
    figures: lines.filter((line) => 'figure' in line),
  };
}

/** The end of a file, for a person. */
export function lastLines(file: string, count: number): string {
  if (!existsSync(file)) return `(there is no ${file})`;
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-count).join('\n');
}
