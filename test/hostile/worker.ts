import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from '../lab/host.ts';
import { judgeHost, judgeOutput } from './judge.ts';
import type { MaliciousReply } from './malicious-reply.ts';
import type { MaliciousServer } from './malicious-server.ts';
import type { CommandResult, Program } from './program.ts';
import { unreadable } from './replies/documents.ts';
import { differences, enrolmentKey, readHost, readHostFiles, withoutCopy } from './target.ts';

/** After so many replies the whole host is compared with its former state, and after each its files. */
const stride = 32;

/** One host, its program and its malicious server, which sends one reply after the other. */
export class Worker {
  readonly #host: Host;
  readonly #server: MaliciousServer;
  readonly #program: Program;
  /** The host's state before its first join. */
  #fresh = '';
  /** The state before each reply; null until the host is prepared, and before a reply that undoes the join. */
  #before: { readonly to: MaliciousReply['to']; readonly state: string; readonly files: string } | null = null;
  /** How many replies it received since the last comparison as a whole. */
  #unseen = 0;
  #self = '';
  #secrets: readonly string[] = [];

  constructor(host: Host, server: MaliciousServer, program: Program) {
    this.#host = host;
    this.#server = server;
    this.#program = program;
  }

  /** Sends a reply to the host, and returns the faults: none where the host refused it. */
  async try(reply: MaliciousReply): Promise<readonly string[]> {
    const { to, outcome } = reply;
    const others = this.#before?.to === to ? [] : await this.finish();
    await this.#prepare(reply);
    const { sent } = this.#server;
    await this.#server.send(reply.name, this.#self);
    const result = await this.#request(to);
    const complaints = [...others, ...judgeOutput(result, this.#secrets)];
    if (this.#server.sent === sent) complaints.push('the reply was never sent');
    const exitCode = 'refused' in outcome ? outcome.refused : 'isLast' in outcome ? 1 : 0;
    if (result.exitCode !== exitCode) complaints.push(`exit code ${result.exitCode}: ${result.stderr}`);
    if ('nowhere' in outcome && result.exitCode === 0) {
      complaints.push(...(await judgeHost(this.#host, this.#program, outcome, this.#secrets)));
    }
    if ('skipped' in outcome && !result.stderr.includes(' is skipped: ')) complaints.push('names no skipped peer');
    // The next reply must not be the second answer that confirms an empty tunnel.
    if (to === 'map' && (!('refused' in outcome) || result.stderr.includes('until a second answer')))
      await this.#receiveTrueMap();
    complaints.push(...(await this.#judgeState(reply)));
    // A fault must not affect the next reply.
    if (complaints.length > 0) await this.#begin();
    return complaints;
  }

  /** Compares the whole host after the last reply, and returns the differences. */
  async finish(): Promise<readonly string[]> {
    return this.#before !== null && this.#unseen > 0 ? this.#compare(this.#before.state) : [];
  }

  /** The differences of the host from its expected state; a network that it joined by such a reply is left first. */
  async #judgeState({ to, outcome }: MaliciousReply): Promise<string[]> {
    const before = this.#before;
    const isTaken = !('refused' in outcome);
    if (isTaken && to === 'enrolment') await this.#begin();
    if (isUndone({ to, outcome })) {
      this.#before = null;
      return compare(this.#fresh, await readHost(this.#host));
    }
    const files = await readHostFiles(this.#host);
    const complaints = compare(before?.files ?? '', files);
    this.#unseen += 1;
    if (complaints.length > 0 || this.#unseen < stride) return complaints;
    return this.#compare(before?.state ?? '');
  }

  /** Compares the whole host with its former state; the copy that the store keeps changes with the replies that are applied. */
  async #compare(state: string): Promise<string[]> {
    const after = await readHost(this.#host);
    const complaints = compare(withoutCopy(state), withoutCopy(after));
    const count = this.#unseen;
    this.#unseen = 0;
    return complaints.map((each) => `after the last ${count} replies ${each}`);
  }

  /** Prepares the host for a reply: joined, or in the middle of a join after a reply that does not decode. */
  async #prepare({ to, outcome }: MaliciousReply): Promise<void> {
    if (this.#before?.to === to) return;
    await this.#begin();
    this.#fresh ||= await readHost(this.#host);
    await this.#server.send(to === 'map' ? null : unreadable, this.#self);
    const { exitCode, stderr } = await this.#request('enrolment');
    if (exitCode !== (to === 'map' ? 0 : 1)) throw new Error(`${this.#host.name} cannot begin: ${stderr}`);
    await this.#readSecrets();
    // Nothing is compared with the middle of a join that is undone.
    if (isUndone({ to, outcome })) return;
    // A second time, for the copy that the store keeps.
    if (to === 'map') await this.#receiveTrueMap();
    else await this.#request('enrolment');
    const [state, files] = [await readHost(this.#host), await readHostFiles(this.#host)];
    this.#before = { to, state, files };
  }

  /** Makes the host one that never joined. */
  async #begin(): Promise<void> {
    await this.#server.send(null, this.#self);
    const hasBegun = this.#self !== '';
    if (hasBegun) {
      await this.#program.run(['leave', '--yes']);
      // The malicious server removes no peer, for which the host keeps its identity.
      if (existsSync(join(this.#host.stateDir, 'former-memberships'))) await this.#program.run(['leave', '--forget']);
    }
    this.#self = '';
    this.#before = null;
    this.#unseen = 0;
  }

  async #receiveTrueMap(): Promise<void> {
    await this.#server.send(null, this.#self);
    const { exitCode, stderr } = await this.#request('map');
    if (exitCode !== 0) throw new Error(`${this.#host.name} does not apply the true map: ${stderr}`);
  }

  #request(to: MaliciousReply['to']): Promise<CommandResult> {
    if (to === 'map') return this.#program.run(['reconcile']);
    const key = `file:${join(this.#host.homeDir, 'key')}`;
    const flags = ['--insecure-http', '--name', 'host', '--interface', 'cpn0', '--wait', '0'];
    // Labels of earlier maps stay in the state of a host that resolves names.
    return this.#program.run(['join', key, '--api', this.#server.url, '--no-dns', ...flags]);
  }

  async #readSecrets(): Promise<void> {
    const state = JSON.parse(await readFile(join(this.#host.stateDir, 'cpn0.json'), 'utf8'));
    const { privateKey, identity, membership, enrollment } = state;
    const secrets = [privateKey, identity, membership?.accessToken, enrollment.idempotencyKey, enrolmentKey];
    this.#secrets = secrets.filter((secret) => typeof secret === 'string');
    const { stdout } = await this.#host.exec(['wg', 'pubkey'], { input: privateKey });
    this.#self = stdout.trim();
  }
}

/** True where the host must be as before its first join: the reply undoes the join, or the host left the network since. */
function isUndone({ to, outcome }: Pick<MaliciousReply, 'to' | 'outcome'>): boolean {
  return 'refused' in outcome ? outcome.undone === true : to === 'enrolment';
}

function compare(before: string, after: string): string[] {
  return before === after ? [] : [`the host is not as before: ${differences(before, after)}`];
}
