import { randomBytes } from 'node:crypto';
import type { ControlPlane } from './control-plane.ts';
import type { Process } from './process.ts';

/** Runs where the owner is logged in, until its input ends; a line of JSON is a request, and so is its answer. */
const shell = `
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const { token } = JSON.parse(readFileSync(process.env.XDG_CONFIG_HOME + '/cpn/login.json', 'utf8'));
const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json' };
for await (const line of createInterface({ input: process.stdin })) {
  const { method, path, body } = JSON.parse(line);
  const reply = await fetch(process.argv[1] + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await reply.text();
  const at = Date.now();
  console.log('answer ' + JSON.stringify(reply.ok ? { at, data: text && JSON.parse(text).data } : { refusal: reply.status + ' ' + text }));
}
process.exit();
`;

/** A peer, with the names of the API. */
export interface ListedPeer {
  readonly id: number;
  readonly name: string;
  readonly public_key: string;
  readonly address: string;
  readonly endpoint: string | null;
}

export interface SetRulesRequest {
  readonly mode: 'open' | 'closed';
  readonly rules: readonly {
    readonly name: string;
    readonly from: readonly string[];
    readonly to: readonly string[];
    readonly protocol?: string;
    readonly ports?: readonly string[];
  }[];
  readonly require_enforcement?: boolean;
  readonly confirm_within_seconds?: number;
}

/** The owner's session at a control plane: a request takes milliseconds, where a command takes a program's start. */
export class Owner {
  readonly #process: Process;
  #last: Promise<unknown> = Promise.resolve();

  constructor({ host, url }: ControlPlane) {
    this.#process = host.spawn(['node', '--input-type=module', '-e', shell, url], { holdInput: true });
  }

  /** Creates a network and returns its number. */
  async createNetwork(name: string, cidr: string, routes: readonly string[] = []): Promise<number> {
    return (await this.#request<{ id: number }>('POST', '', { name, private_cidr: cidr, routes })).id;
  }

  async setRoutes(network: number, routes: readonly string[]): Promise<void> {
    await this.#request('PATCH', `/${network}`, { routes });
  }

  /** Closes or opens a network. Selectors name peers: `peer:laptop`. */
  async setRules(network: number, rules: SetRulesRequest): Promise<number> {
    return (await this.#send('PUT', `/${network}/rules`, rules)).at;
  }

  async setTags(network: number, peer: number, tags: readonly string[]): Promise<void> {
    await this.#request('PATCH', `/${network}/peers/${peer}`, { tags });
  }

  /** Withdraws exactly these prefixes of a connector, as if it had done it itself. */
  async withdraw(network: number, peer: number, withdrawn: readonly string[]): Promise<void> {
    await this.#request('PATCH', `/${network}/peers/${peer}`, { withdrawn });
  }

  async listPeers(network: number): Promise<readonly ListedPeer[]> {
    return (await this.#request<{ peers: ListedPeer[] }>('GET', `/${network}`)).peers;
  }

  /** Adds a peer without a host, and returns its number. */
  async addStranger(network: number, name: string, endpoint: string | null): Promise<number> {
    const enrollment_token = await this.makeKey(network, name);
    const public_key = randomBytes(32).toString('base64');
    const request = { enrollment_token, name, public_key, ...(endpoint !== null && { endpoint }) };
    return (await this.#request<{ peer: ListedPeer }>('POST', '/enroll', request)).peer.id;
  }

  /** Gives a peer another endpoint; returns when that was answered, in milliseconds since the epoch. */
  async setEndpoint(network: number, peer: number, endpoint: string | null): Promise<number> {
    return (await this.#send('PATCH', `/${network}/peers/${peer}`, { endpoint })).at;
  }

  async removePeer(network: number, peer: number): Promise<void> {
    await this.#request('DELETE', `/${network}/peers/${peer}`);
  }

  /** Makes an enrolment key for one use. */
  async makeKey(network: number, name: string): Promise<string> {
    const path = `/${network}/enrollment-keys`;
    return (await this.#request<{ enrollment_token: string }>('POST', path, { name })).enrollment_token;
  }

  /** How often each key was used, by its name. */
  async countUses(network: number): Promise<ReadonlyMap<string, number>> {
    const keys = await this.#request<{ name: string; uses: number }[]>('GET', `/${network}/enrollment-keys?all=true`);
    return new Map(keys.map(({ name, uses }) => [name, uses]));
  }

  async #request<Data>(method: string, path: string, body?: unknown): Promise<Data> {
    return (await this.#send<Data>(method, path, body)).data;
  }

  /** One request after the other; throws what the control plane refuses. */
  #send<Data>(method: string, path: string, body?: unknown): Promise<{ at: number; data: Data }> {
    const answer = this.#last.then(async () => {
      this.#process.writeInput(`${JSON.stringify({ method, path: `/api/networks${path}`, body })}\n`);
      const [, text = ''] = await this.#process.waitForLine(/^answer (.*)$/);
      const { at, data, refusal } = JSON.parse(text);
      if (refusal !== undefined) throw new Error(`${method} ${path}: ${refusal}`);
      return { at, data };
    });
    this.#last = answer.catch(() => {});
    return answer;
  }
}
