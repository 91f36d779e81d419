import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';

/** How long an answer may take on a busy machine. */
const PATIENCE_MS = 20_000;

/** A program that answers each line on its standard input with one line, and ends with the end of its input. */
export class LineServer {
  readonly #child: ChildProcess;
  readonly #lines: Interface;
  readonly #ended: Promise<void>;
  #stderr = '';

  /** @param env all of its environment */
  constructor([command = '', ...args]: readonly string[], env: Readonly<Record<string, string>>) {
    this.#child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    if (this.#child.stdout === null) throw new Error(`${command} has no standard output`);
    this.#lines = createInterface({ input: this.#child.stdout });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = `${this.#stderr}${text}`.slice(-4000);
    });
    this.#child.stdin?.on('error', () => {});
    this.#ended = new Promise((done) => {
      this.#child.once('error', (error) => {
        this.#stderr += error.message;
        done();
      });
      this.#child.once('close', () => done());
    });
  }

  /** Writes a line, and returns the one that it answers with. */
  async request(line: string): Promise<string> {
    const answer = Promise.withResolvers<string>();
    const timer = setTimeout(() => answer.reject(new Error(`no answer; stderr: ${this.#stderr}`)), PATIENCE_MS);
    void this.#ended.then(() => answer.reject(new Error(`it ended; stderr: ${this.#stderr}`)));
    this.#lines.once('line', answer.resolve);
    this.#child.stdin?.write(`${line}\n`);
    try {
      return await answer.promise;
    } finally {
      clearTimeout(timer);
      this.#lines.removeListener('line', answer.resolve);
    }
  }

  async close(): Promise<void> {
    this.#child.stdin?.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), PATIENCE_MS);
    await this.#ended;
    clearTimeout(timer);
  }
}
