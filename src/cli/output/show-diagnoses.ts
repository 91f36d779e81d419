import type { Diagnosis } from '../../app/doctor/examine.ts';
import { printable } from '../../core/errors/index.ts';
import { bold, dim, green, red, yellow } from './output.ts';

/** The JSON of a check-up, a contract for scripts. */
export function diagnosesToJson(diagnoses: readonly Diagnosis[]) {
  return {
    healthy: diagnoses.every(({ verdict }) => verdict !== 'problem'),
    findings: diagnoses.map(({ subject, interface: link, verdict, checked, found, remedy }) => ({
      check: subject,
      interface: link,
      verdict,
      looked_at: checked,
      found,
      remedy,
    })),
  };
}

/** Problems and notes with remedies, and the number of passed checks; `all` lists those too. */
export function diagnosesToText(diagnoses: readonly Diagnosis[], all: boolean): string {
  const shown = diagnoses.filter(({ verdict }) => all || verdict !== 'ok');
  const count = (wanted: Diagnosis['verdict']) => diagnoses.filter(({ verdict }) => verdict === wanted).length;
  const hidden = all || count('ok') === 0 ? '' : `; "cpn doctor --all" shows the ${count('ok')} that passed`;
  const problems = count('problem');
  const sum = problems === 0 ? green('no problem') : red(`${problems} ${problems === 1 ? 'problem' : 'problems'}`);
  return [...shown.map(describe), `${sum} in ${diagnoses.length} findings${dim(hidden)}`].join('\n');
}

function describe({ subject, verdict, checked, found, remedy }: Diagnosis): string {
  const line = `${paint(verdict)} ${bold(subject)}  ${printable(checked)}: ${printable(found)}`;
  return remedy === null ? line : `${line}\n        ${dim('→')} ${printable(remedy)}`;
}

function paint(verdict: Diagnosis['verdict']): string {
  const color = { ok: green, note: yellow, problem: red }[verdict];
  return color(verdict.padEnd('problem'.length));
}
