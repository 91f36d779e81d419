import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from '../lab/host.ts';
import { judgeHost, judgeWords } from './judge.ts';
import type { Liar } from './liar.ts';
import type { Lie } from './lie.ts';
import { unreadable } from './lies/documents.ts';
import type { Program, Said } from './program.ts';
import { differences, enrolmentKey, look, withoutCopy } from './victim.ts';

/** One host, its program and its lying server: where one lie after the other is told. */
export class Lane {
  readonly #host: Host;
  readonly #liar: Liar;
  readonly #program: Program;
  /** What the host was before it ever joined. */
  #fresh = '';
  /** What it is before every lie; null where it has yet to be made that. */
  #before: { readonly to: Lie['to']; readonly state: string } | null = null;
  #self = '';
  #secrets: readonly string[] = [];

  constructor(host: Host, liar: Liar, program: Program) {
    this.#host = host;
    this.#liar = liar;
    this.#program = program;
  }

  /** Tells a lie to the host, and returns all that went otherwise than it should: nothing where the lie was refused. */
  async try(lie: Lie): Promise<readonly string[]> {
    const { to, outcome } = lie;
    await this.#prepare(to);
    const { told } = this.#liar;
    await this.#liar.tell(lie.name, this.#self);
    const said = await this.#ask(to);
    const complaints = judgeWords(said, this.#secrets);
    if (this.#liar.told === told) complaints.push('the lie was never told');
    const exitCode = 'refused' in outcome ? outcome.refused : 0;
    if (said.exitCode !== exitCode) complaints.push(`exit code ${said.exitCode}: ${said.stderr}`);
    if ('nowhere' in outcome && said.exitCode === 0) {
      complaints.push(...(await judgeHost(this.#host, this.#program, outcome, this.#secrets)));
    }
    if ('skipped' in outcome && !said.stderr.includes(' is skipped: ')) complaints.push('names no skipped peer');
    // One answer of two that would empty the tunnel is not to be confirmed by the next lie.
    if (to === 'map' && (!('refused' in outcome) || said.stderr.includes('until a second answer')))
      await this.#hearTruth();
    complaints.push(...(await this.#judgeState(lie)));
    // What went wrong once is not to spoil the next lie.
    if (complaints.length > 0) await this.#begin();
    return complaints;
  }

  /** What is otherwise on the host than it should be by now, which is nothing but for what it joined by a lie: that is left. */
  async #judgeState({ to, outcome }: Lie): Promise<string[]> {
    const before = this.#before?.state ?? '';
    const isTaken = !('refused' in outcome);
    const isUndone = 'refused' in outcome ? outcome.undone === true : to === 'enrolment';
    if (isTaken && to === 'enrolment') await this.#begin();
    const after = await look(this.#host);
    if (isUndone) this.#before = null;
    else if (isTaken) this.#before = { to, state: after };
    const whole = isUndone ? [this.#fresh, after] : isTaken ? [before, after].map(withoutCopy) : [before, after];
    const [one = '', other = ''] = whole;
    return one === other ? [] : [`the host is not as before: ${differences(one, other)}`];
  }

  /** Makes the host what it is before such a lie, unless it is that still: joined, or in the middle of a join whose reply nobody could read. */
  async #prepare(to: Lie['to']): Promise<void> {
    if (this.#before?.to === to) return;
    await this.#begin();
    this.#fresh ||= await look(this.#host);
    await this.#liar.tell(to === 'map' ? null : unreadable, this.#self);
    const { exitCode, stderr } = await this.#ask('enrolment');
    if (exitCode !== (to === 'map' ? 0 : 1)) throw new Error(`${this.#host.name} cannot begin: ${stderr}`);
    await this.#readSecrets();
    // A second time, for the copy that the store keeps.
    if (to === 'map') await this.#hearTruth();
    else await this.#ask('enrolment');
    this.#before = { to, state: await look(this.#host) };
  }

  /** Makes the host one that never joined. */
  async #begin(): Promise<void> {
    await this.#liar.tell(null, this.#self);
    const hasBegun = this.#self !== '';
    if (hasBegun) await this.#program.run(['leave', '--yes']);
    this.#self = '';
    this.#before = null;
  }

  async #hearTruth(): Promise<void> {
    await this.#liar.tell(null, this.#self);
    const { exitCode, stderr } = await this.#ask('map');
    if (exitCode !== 0) throw new Error(`${this.#host.name} does not take the truth: ${stderr}`);
  }

  #ask(to: Lie['to']): Promise<Said> {
    if (to === 'map') return this.#program.run(['reconcile']);
    const key = `file:${join(this.#host.homeDir, 'key')}`;
    const flags = ['--insecure-http', '--name', 'host', '--interface', 'cpn0', '--wait', '0'];
    return this.#program.run(['join', key, '--api', this.#liar.url, ...flags]);
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
