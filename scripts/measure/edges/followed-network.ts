import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Joined, makeKey } from '../../../test/lab/control-plane.ts';
import { Daemon } from '../../../test/lab/daemon.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import type { Lab } from '../../../test/lab/lab.ts';
import type { ProxiedWay } from '../../../test/lab/reverse-proxies.ts';
import { isDone, isEnd, isWaiting } from '../host/reach.ts';
import type { Serving } from './planes.ts';

const patient = { timeoutMs: 120_000, everyMs: 20 };

/** Requests of a host, and those among them that read a map, and that got a whole one. */
export interface RequestCount {
  readonly all: number;
  readonly polls: number;
  readonly wholeMaps: number;
}

/**
 * A host that follows a network of its own along one way. A peer without a host is in it too:
 * changes are made of that.
 */
export class FollowedNetwork {
  readonly name: string;
  readonly #serving: Serving;
  readonly #host: Host;
  readonly #joined: Joined;
  readonly #stranger: number;
  readonly #daemon: Daemon;
  #port = 1024;

  private constructor(name: string, serving: Serving, host: Host, joined: Joined, stranger: number, daemon: Daemon) {
    this.name = name;
    this.#serving = serving;
    this.#host = host;
    this.#joined = joined;
    this.#stranger = stranger;
    this.#daemon = daemon;
  }

  /** Creates a network at the control plane, and joins a new host to it along the way. */
  static async start(lab: Lab, serving: Serving, { name, url }: ProxiedWay, number: number): Promise<FollowedNetwork> {
    const { plane, owner } = serving;
    const network = `network-${number}`;
    // No proxy compresses a short map.
    const description = 'long '.repeat(190);
    await plane.cpn(['network', 'create', '--name', network, '--cidr', '10.77.0.0/24', '--description', description]);
    const host = await lab.addHost(`edge-${number}`, { address: `203.0.113.${11 + number}/24` });
    const key = await makeKey(plane, network, network);
    const api = ['--api', url, ...(url.startsWith('http:') ? ['--insecure-http'] : [])];
    const { stdout } = await host.cpn(['join', '-', ...api, '--wait', '0', '--json'], { input: key });
    const joined: Joined = JSON.parse(stdout);
    const stranger = await owner.addStranger(joined.network.id, 'stranger', '198.51.100.7:1024');
    await forgetRevision(join(host.stateDir, `${joined.interface}.json`));
    const daemon = new Daemon(await host.spawnCpn(['run'], { env: { CPN_LOG_LEVEL: 'debug' } }));
    return new FollowedNetwork(name, serving, host, joined, stranger, daemon);
  }

  /**
   * Waits until the host has held a request open, which its notes have at the end of the first one.
   */
  async untilWaiting(): Promise<void> {
    await eventually(`a request waits: ${this.name}`, () => isWaiting(this.#host), patient);
  }

  /**
   * Changes a peer, and returns the milliseconds from the answer until the kernel of the host has
   * the change.
   */
  async change(): Promise<number> {
    const mark = this.#daemon.mark();
    this.#port += 1;
    const { network } = this.#joined;
    const answered = await this.#serving.owner.setEndpoint(network.id, this.#stranger, `198.51.100.7:${this.#port}`);
    const { time } = await this.#daemon.awaitLog(`the change, ${this.name}`, isDone, mark, 120_000);
    await this.#daemon.awaitLog(`the end of it, ${this.name}`, isEnd, mark, 120_000);
    return Math.max(0, time - answered);
  }

  /** Requests of the host since a position in the log of the control plane. */
  countSince(mark: number): RequestCount {
    const own = this.#serving.log
      .since(mark)
      .filter(({ msg, peer }) => msg === 'request answered' && peer === this.#joined.peer.id);
    const polls = own.filter(({ method, route }) => method === 'GET' && route === '/api/networks/:network');
    return { all: own.length, polls: polls.length, wholeMaps: polls.filter(({ status }) => status === 200).length };
  }

  mark(): number {
    return this.#serving.log.mark();
  }
}

/** The host then reads the whole map, with the ETag that comes through. */
async function forgetRevision(file: string): Promise<void> {
  const state = JSON.parse(await readFile(file, 'utf8'));
  state.membership.map.revision = null;
  await writeFile(file, JSON.stringify(state));
}
