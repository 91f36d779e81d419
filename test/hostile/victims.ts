import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { Lane } from './lane.ts';
import { Liar } from './liar.ts';
import type { Lie } from './lie.ts';
import type { Program } from './program.ts';
import type { Verdicts } from './record.ts';
import { addVictim } from './victim.ts';

/** A lab of hosts that are all lied to, side by side. */
export class Victims {
  readonly #lab: Lab;
  readonly #lanes: readonly Lane[];

  private constructor(lab: Lab, lanes: readonly Lane[]) {
    this.#lab = lab;
    this.#lanes = lanes;
  }

  /** Starts so many hosts, each with a control plane of its own. */
  static async start(count: number, programOn: (host: Host) => Program): Promise<Victims> {
    const lab = await Lab.start();
    const liars = await lab.addHost('liars', { address: '203.0.113.1/24' });
    const lanes: Lane[] = [];
    for (let number = 1; number <= count; number++) {
      const host = await addVictim(lab, number);
      lanes.push(new Lane(host, await Liar.start(liars, 8786 + number), programOn(host)));
    }
    return new Victims(lab, lanes);
  }

  /** Tells every lie to one of the hosts. The slow ones go first, and those of a kind together: a host is made ready for a kind. */
  async try(lies: readonly Lie[]): Promise<Verdicts> {
    const verdicts = new Map<string, readonly string[]>();
    const slow = lies.filter((lie) => lie.slow);
    const queues = (['map', 'enrolment'] as const).map((to) => lies.filter((lie) => lie.to === to && !lie.slow));
    const rest = [slow, ...queues].flat();
    const work = async (lane: Lane) => {
      for (let lie = rest.shift(); lie !== undefined; lie = rest.shift()) verdicts.set(lie.name, await lane.try(lie));
    };
    await Promise.all(this.#lanes.map(work));
    return verdicts;
  }

  /** Ends everything. */
  stop(): Promise<void> {
    return this.#lab.stop();
  }
}
