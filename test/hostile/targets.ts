import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import type { MaliciousReply } from './malicious-reply.ts';
import { MaliciousServer } from './malicious-server.ts';
import type { Program } from './program.ts';
import type { Verdicts } from './record.ts';
import { addTarget } from './target.ts';
import { Worker } from './worker.ts';

/** A lab of hosts that receive malicious replies, side by side. */
export class Targets {
  readonly #lab: Lab;
  readonly #workers: readonly Worker[];

  private constructor(lab: Lab, workers: readonly Worker[]) {
    this.#lab = lab;
    this.#workers = workers;
  }

  /** Starts so many hosts, each with a control plane of its own. */
  static async start(count: number, programOn: (host: Host) => Program): Promise<Targets> {
    const lab = await Lab.start();
    const servers = await lab.addHost('servers', { address: '203.0.113.1/24' });
    const workers: Worker[] = [];
    for (let number = 1; number <= count; number++) {
      const host = await addTarget(lab, number);
      workers.push(new Worker(host, await MaliciousServer.start(servers, 8786 + number), programOn(host)));
    }
    return new Targets(lab, workers);
  }

  /** Sends every reply to one of the hosts. Slow ones go first, and those of a kind together: a host is prepared for a kind. */
  async try(replies: readonly MaliciousReply[]): Promise<Verdicts> {
    const verdicts = new Map<string, readonly string[]>();
    const slow = replies.filter((reply) => reply.slow);
    const queues = (['map', 'enrolment'] as const).map((to) =>
      replies.filter((reply) => reply.to === to && !reply.slow),
    );
    const rest = [slow, ...queues].flat();
    const work = async (worker: Worker) => {
      let last = '';
      for (let reply = rest.shift(); reply !== undefined; reply = rest.shift()) {
        last = reply.name;
        verdicts.set(last, await worker.try(reply));
      }
      const complaints = await worker.finish();
      if (complaints.length > 0) verdicts.set(last, [...(verdicts.get(last) ?? []), ...complaints]);
    };
    await Promise.all(this.#workers.map(work));
    return verdicts;
  }

  /** Ends everything. */
  stop(): Promise<void> {
    return this.#lab.stop();
  }
}
