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
  /** For slow replies, which only wait. */
  readonly #waiting: readonly Worker[];

  private constructor(lab: Lab, workers: readonly Worker[], waiting: readonly Worker[]) {
    this.#lab = lab;
    this.#workers = workers;
    this.#waiting = waiting;
  }

  /** Starts hosts, each with a control plane of its own: some for all replies that are not slow, and some for slow ones. */
  static async start(
    { hosts, forSlow }: { readonly hosts: number; readonly forSlow: number },
    programOn: (host: Host) => Program,
  ): Promise<Targets> {
    const lab = await Lab.start();
    const servers = await lab.addHost('servers', { address: '203.0.113.1/24' });
    const startWorker = async (number: number) => {
      const [host, server] = await Promise.all([addTarget(lab, number), MaliciousServer.start(servers, 8786 + number)]);
      return new Worker(host, server, programOn(host));
    };
    const workers = await Promise.all(Array.from({ length: hosts + forSlow }, (_, at) => startWorker(at + 1)));
    return new Targets(lab, workers.slice(0, hosts), workers.slice(hosts));
  }

  /** Sends every reply to one of the hosts, and those of a kind together: a host is prepared for a kind. */
  async try(replies: readonly MaliciousReply[]): Promise<Verdicts> {
    const verdicts = new Map<string, readonly string[]>();
    const slow = replies.filter((reply) => reply.slow);
    const queues = (['map', 'enrolment'] as const).map((to) =>
      replies.filter((reply) => reply.to === to && !reply.slow),
    );
    const work = async (worker: Worker, rest: MaliciousReply[]) => {
      let last = '';
      for (let reply = rest.shift(); reply !== undefined; reply = rest.shift()) {
        last = reply.name;
        verdicts.set(last, await worker.try(reply));
      }
      const complaints = await worker.finish();
      if (complaints.length > 0) verdicts.set(last, [...(verdicts.get(last) ?? []), ...complaints]);
    };
    const rest = queues.flat();
    await Promise.all([
      ...this.#waiting.map((worker) => work(worker, slow)),
      ...this.#workers.map((worker) => work(worker, rest)),
    ]);
    return verdicts;
  }

  /** Ends everything. */
  stop(): Promise<void> {
    return this.#lab.stop();
  }
}
