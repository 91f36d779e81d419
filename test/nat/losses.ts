import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';

/** Milliseconds between two packets. */
const every = 20;

/** A ping without an end, whose lost packets are counted between marks. */
export class Losses {
  readonly #process: Process;
  readonly #marks: Mark[] = [];

  private constructor(process: Process) {
    this.#process = process;
  }

  /** Starts one, and waits until it is answered. */
  static async start(from: Host, address: string): Promise<Losses> {
    const losses = new Losses(from.spawn(['ping', '-n', '-i', `${every / 1000}`, address]));
    await eventually(`${address} answers ${from.name}`, () => losses.#answered.length > 3);
    return losses;
  }

  get #answered(): number[] {
    return [...this.#process.output.stdout.matchAll(/icmp_seq=(\d+) ttl/g)].map(([, number]) => Number(number));
  }

  /** Names the time since the last mark. Returns its milliseconds without answers. */
  mark(name: string): number {
    const mark = { name, from: this.#marks.at(-1)?.to ?? this.#answered[0] ?? 0, to: this.#answered.at(-1) ?? 0 };
    this.#marks.push(mark);
    return this.#lostIn(mark);
  }

  /** Milliseconds without answers in each time that has a name. */
  report(): string {
    return this.#marks.map((mark) => `${mark.name} ${this.#lostIn(mark)} ms`).join('\n');
  }

  async stop(): Promise<void> {
    await this.#process.stop();
  }

  #lostIn({ from, to }: Mark): number {
    const answered = new Set(this.#answered);
    const numbers = Array.from({ length: to - from }, (_, index) => from + index);
    return numbers.filter((number) => !answered.has(number)).length * every;
  }
}

/** A time, from one sequence number to another. */
interface Mark {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}
