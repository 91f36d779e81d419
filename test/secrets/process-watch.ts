import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
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

  /** A look reads hundreds of files of the kernel, which cost far less one after another than side by side. */
  async #watch(): Promise<void> {
    const ours = readlinkSync('/proc/self/ns/net');
    for (; this.looks < mostLooks && !this.#ended; this.looks += 1) {
      for (const pid of readdirSync('/proc')) if (/^\d+$/.test(pid)) this.#look(pid, ours);
      await sleep(pauseMs);
    }
  }

  #look(pid: string, ours: string): void {
    try {
      if (readlinkSync(`/proc/${pid}/ns/net`) === ours) return;
      for (const [file, texts] of this.seen) {
        const text = readFileSync(`/proc/${pid}/${file}`, 'utf8');
        if (text !== '') texts.add(text);
      }
    } catch {
      // It ended meanwhile.
    }
  }
}
