import { readdir, readFile, readlink } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** Between two looks, in milliseconds: a process of Node lives longer. */
const pauseMs = 40;
/** A watch that nobody ends. */
const mostLooks = 100_000;

/**
 * Looks at the arguments and environments of all processes in other network namespaces than ours again and again, as a local user
 * would, until it is ended: what a process makes of its own arguments once it runs, no trace of execve shows.
 */
export class ProcessWatch {
  /** Everything that was seen, by what it is. */
  readonly seen = new Map<string, Set<string>>([
    ['cmdline', new Set()],
    ['environ', new Set()],
  ]);
  looks = 0;
  #ended = false;
  readonly #running: Promise<void>;

  constructor() {
    this.#running = this.#watch();
  }

  async end(): Promise<void> {
    this.#ended = true;
    await this.#running;
  }

  async #watch(): Promise<void> {
    const ours = await readlink('/proc/self/ns/net');
    for (; this.looks < mostLooks && !this.#ended; this.looks += 1) {
      const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
      await Promise.all(pids.map((pid) => this.#look(pid, ours).catch(() => {})));
      await sleep(pauseMs);
    }
  }

  async #look(pid: string, ours: string): Promise<void> {
    if ((await readlink(`/proc/${pid}/ns/net`)) === ours) return;
    for (const [file, texts] of this.seen) {
      const text = await readFile(`/proc/${pid}/${file}`, 'utf8');
      if (text !== '') texts.add(text);
    }
  }
}
