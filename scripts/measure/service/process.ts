import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A script of this folder in a process of its own, which receives requests over IPC and answers
 * each.
 */
export class Worker<Order extends object, Answer extends { readonly kind: string }> {
  readonly #child: ChildProcess;
  #answers: Answer[] = [];
  #notify: () => void = () => {};
  #ended: Error | null = null;

  constructor(script: string, execArgv: readonly string[] = []) {
    this.#child = fork(join(import.meta.dirname, script), { execArgv: [...execArgv] });
    this.#child.on('message', (answer) => {
      this.#answers.push(answer as Answer);
      this.#notify();
    });
    this.#child.on('exit', (code, signal) => {
      this.#ended = new Error(`${script} ended early (${signal ?? code})`);
      this.#notify();
    });
  }

  /** How many files and connections it has open. Counting takes some milliseconds for 10,000. */
  countFiles(): number {
    return readdirSync(`/proc/${this.#child.pid}/fd`).length;
  }

  send(order: Order): void {
    this.#child.send(order);
  }

  /** The next answer, which must be of this kind. */
  async receive<Kind extends Answer['kind']>(kind: Kind): Promise<Answer & { kind: Kind }> {
    for (;;) {
      const answer = this.#answers.shift();
      if (answer?.kind === kind) return answer as Answer & { kind: Kind };
      if (answer) throw new Error(`expected ${kind}, received ${answer.kind}`);
      if (this.#ended) throw this.#ended;
      await new Promise<void>((resolve) => {
        this.#notify = resolve;
      });
    }
  }

  async request<Kind extends Answer['kind']>(order: Order, kind: Kind): Promise<Answer & { kind: Kind }> {
    this.send(order);
    return this.receive(kind);
  }

  /** Ends the process; with `last` by a request, so that it can write its profile. */
  async end(last?: Order): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    if (last) this.send(last);
    else this.#child.kill();
    await ended;
  }
}
