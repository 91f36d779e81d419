import type { DiskFailed } from '../core/errors.ts';

/** Is told once that something fails, and once that nothing does any more. */
export type Report = (event: 'failing' | 'recovered', error?: DiskFailed) => void;

/** What fails at the moment, each by a name of its own. */
export class Troubles {
  readonly #report: Report;
  readonly #names = new Set<string>();

  constructor(report: Report) {
    this.#report = report;
  }

  begin(name: string, error: DiskFailed): void {
    const isFirst = this.#names.size === 0;
    this.#names.add(name);
    if (isFirst) this.#report('failing', error);
  }

  end(name: string): void {
    if (this.#names.delete(name) && this.#names.size === 0) this.#report('recovered');
  }
}
