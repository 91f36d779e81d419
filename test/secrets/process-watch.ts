import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Between two scans, in milliseconds: a process of Node lives longer. */
const pauseMs = 100;
/** The limit of a watch that is not ended. */
const mostLooks = 100_000;

/**
 * Reads the arguments and environments of all processes in other network namespaces repeatedly, as a local user would,
 * until it is ended: a process can change its own arguments after execve.
 */
export class ProcessWatch {
  /** Everything that was read, by its source. */
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

  /** A scan reads hundreds of files of the kernel, which cost far less one after another than in parallel. */
  async #watch(): Promise<void> {
    const ours = readlinkSync('/proc/self/ns/net');
    for (; this.looks < mostLooks && !this.#ended; this.looks += 1) {
      for (const pid of readdirSync('/proc')) if (/^\d+$/.test(pid)) this.#scan(pid, ours);
      await sleep(pauseMs);
    }
  }

  #scan(pid: string, ours: string): void {
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
