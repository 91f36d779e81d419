import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from './host.ts';
import { order } from './orders.ts';
import type { Process } from './process.ts';

/**
 * The addresses of names, of either family, and the names of reverse names such as `1.2.0.192.in-addr.arpa`, each with a time to live in
 * seconds after it if that is not 0; `-> www.example` leads to another name, whose records follow. A query for a name with `silent` has no reply. Any other name does not exist. Or a server that never answers, or refuses each query.
 */
export type Zone = Readonly<Record<string, readonly string[]>> | 'silent' | 'refusing';

/** A DNS server on a host of the lab, over UDP and TCP. No name exists until it is given a zone. */
export class DnsServer {
  readonly #server: Process;
  readonly #address: string;
  #zone: Zone = {};

  private constructor(server: Process, address: string) {
    this.#server = server;
    this.#address = address;
  }

  /** Starts it on the host's first address and port 53, or on others. */
  static async start(
    host: Host,
    zone: Zone = {},
    { address = host.address, port = 53 }: { readonly address?: string; readonly port?: number } = {},
  ): Promise<DnsServer> {
    const argv = ['node', join(import.meta.dirname, 'dns-server.ts'), address, String(port)];
    const server = host.spawn(argv, { holdInput: true });
    await server.waitForLine(/^listening$/);
    const dns = new DnsServer(server, address);
    await dns.serve(zone);
    return dns;
  }

  /** Answers by this zone from now on. */
  async serve(zone: Zone): Promise<void> {
    this.#zone = zone;
    await order(this.#server, zone);
  }

  /** Waits until a name is looked up, counted since the last order. */
  async awaitQuestion(name: string): Promise<void> {
    await this.#server.waitForLine(new RegExp(`^asked for ${name.replaceAll('.', '\\.')} `));
  }

  /** The queries for a name so far, of all types. */
  async countQuestions(name: string): Promise<number> {
    // The confirmation of an order comes after the lines of all earlier queries.
    await this.serve(this.#zone);
    return this.#server.output.stdout.split('\n').filter((line) => line.startsWith(`asked for ${name} `)).length;
  }

  /** Stops it: its port then refuses queries. */
  async stop(): Promise<void> {
    await this.#server.stop();
  }

  /** Makes it the resolver of a host, which queries it once and waits a second for the answer. */
  async resolveFor({ etcDir }: Host): Promise<void> {
    await writeFile(join(etcDir, 'resolv.conf'), `nameserver ${this.#address}\noptions timeout:1 attempts:1\n`);
  }
}
