import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Joined, makeKey } from '../../../test/lab/control-plane.ts';
import type { Daemon } from '../../../test/lab/daemon.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import type { ProxiedWay } from '../../../test/lab/reverse-proxies.ts';
import { isDone, isWaiting } from '../host/reach.ts';
import type { Serving } from './planes.ts';

const patient = { timeoutMs: 120_000, everyMs: 20 };

/** Requests of a host, whole maps among them, and maps that the control plane sent without any change. */
export interface RequestCount {
  readonly all: number;
  readonly polls: number;
  readonly wholeMaps: number;
}

/** A network that a host follows along one way. A peer without a host is in it too: changes are made of that. */
export class FollowedNetwork {
  readonly name: string;
  readonly #serving: Serving;
  readonly #host: Host;
  readonly #joined: Joined;
  readonly #stranger: number;
  #port = 1024;

  private constructor(name: string, serving: Serving, host: Host, joined: Joined, stranger: number) {
    this.name = name;
    this.#serving = serving;
    this.#host = host;
    this.#joined = joined;
    this.#stranger = stranger;
  }

  /** Creates a network with this number at the control plane, and joins the host to it along the way. */
  static async join(serving: Serving, { name, url }: ProxiedWay, host: Host, number: number): Promise<FollowedNetwork> {
    const { plane, owner } = serving;
    const [link, cidr] = [`n${number}`, `10.${80 + number}.0.0/24`];
    // No proxy compresses a short map.
    await plane.cpn(['network', 'create', '--name', link, '--cidr', cidr, '--description', 'long '.repeat(190)]);
    const key = await makeKey(plane, link, link);
    const flags = ['--interface', link, '--wait', '0', '--type', 'origin', '--name', 'edge', '--json'];
    const api = ['--api', url, ...(url.startsWith('http:') ? ['--insecure-http'] : [])];
    const joined: Joined = JSON.parse((await host.cpn(['join', '-', ...api, ...flags], { input: key })).stdout);
    const stranger = await owner.addStranger(joined.network.id, 'stranger', '198.51.100.7:1024');
    await forgetRevision(join(host.stateDir, `${link}.json`));
    return new FollowedNetwork(name, serving, host, joined, stranger);
  }

  /** Waits until the host holds a request open. */
  async untilWaiting(): Promise<void> {
    await eventually(`a request waits: ${this.name}`, () => isWaiting(this.#host, this.#joined.interface), patient);
  }

  /** Changes a peer, and returns the milliseconds from the answer until the kernel of the host has the change. */
  async change(daemon: Daemon, timeoutMs = 120_000): Promise<number> {
    const mark = daemon.mark();
    this.#port += 1;
    const { network, interface: link } = this.#joined;
    const answered = await this.#serving.owner.setEndpoint(network.id, this.#stranger, `198.51.100.7:${this.#port}`);
    const { time } = await daemon.awaitLog(
      `the change, ${this.name}`,
      (line) => line.interface === link && isDone(line),
      mark,
      timeoutMs,
    );
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
