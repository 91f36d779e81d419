import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { builtProgram } from '../lab/built-program.ts';
import { traceExecs } from '../lab/exec-trace.ts';
import type { Host } from '../lab/host.ts';
import type { Lab } from '../lab/lab.ts';
import type { Outcome, Process } from '../lab/process.ts';
import { Canaries } from './canaries.ts';

/** The options of a command. */
interface Manner {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** It is expected to fail. */
  readonly fails?: boolean;
  /** The command prints a secret on stdout, as requested. */
  readonly gives?: boolean;
}

export const api = 'http://203.0.113.1:8787';

/** Hosts, an administrator and a control plane, the output of their programs, and the secrets that none of it may hold. */
export class Life {
  readonly canaries = new Canaries();
  /** The output, by command. */
  readonly said: { readonly what: string; readonly text: string }[] = [];
  readonly traces: string[] = [];
  readonly lab: Lab;
  readonly host: Host;
  readonly admin: Host;

  constructor(lab: Lab, host: Host, admin: Host) {
    this.lab = lab;
    this.host = host;
    this.admin = admin;
  }

  /** Runs a command with its log wide open and every start of a program recorded. */
  async cpn(
    on: Host,
    args: readonly string[],
    { input, env, fails = false, gives = false }: Manner = {},
  ): Promise<Outcome> {
    const argv = await this.#traced(on, args);
    const options = { env: { CPN_LOG_LEVEL: 'trace', ...env }, timeoutMs: 60_000, allowFailure: true };
    const outcome = await on.exec(argv, { ...options, ...(input !== undefined && { input }) });
    const what = args.slice(0, 2).join(' ');
    if ((outcome.exitCode !== 0) !== fails)
      throw new Error(`${what} exited with ${outcome.exitCode}: ${outcome.stderr}`);
    this.said.push({ what: `${what}, stderr`, text: outcome.stderr });
    if (!gives) this.said.push({ what: `${what}, stdout`, text: outcome.stdout });
    return outcome;
  }

  /** Starts a program that keeps running; its output is recorded when {@link end} ends it. */
  async start(on: Host, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Process> {
    return on.spawn(await this.#traced(on, args), { env: { CPN_LOG_LEVEL: 'trace', ...env } });
  }

  async end(process: Process, what: string): Promise<void> {
    const { stdout, stderr } = await process.stop(10_000);
    this.said.push({ what, text: stdout + stderr });
  }

  /** A secret of a person in a file that only that person may read. */
  async secretFile(on: Host, name: string, text = randomBytes(18).toString('base64url')): Promise<string> {
    const path = join(on.homeDir, name);
    await writeFile(path, text, { mode: 0o600 });
    this.canaries.addText(name, text);
    return path;
  }

  /** A new enrolment key of the network. */
  async newKey(name: string, ...flags: string[]): Promise<string> {
    const { stdout } = await this.cpn(this.admin, ['key', 'create', 'office', '--name', name, ...flags], {
      gives: true,
    });
    this.canaries.addText(`enrolment key ${name}`, stdout.trim());
    return stdout.trim();
  }

  /** Adds the secrets that the host has by now. */
  async learnState(): Promise<string> {
    const text = await readFile(join(this.host.stateDir, 'cpn0.json'), 'utf8');
    this.canaries.addState(text);
    const config = await readFile(join(this.host.configDir, 'cpn0.conf'), 'utf8').catch(() => '');
    for (const [, key = ''] of config.matchAll(/^PresharedKey = (.*)$/gm)) this.canaries.addKey('preshared key', key);
    return text;
  }

  async #traced(on: Host, args: readonly string[]): Promise<string[]> {
    const folder = join(on.folder, 'traces');
    await mkdir(folder, { recursive: true });
    const trace = join(folder, `trace-${this.traces.length}`);
    this.traces.push(trace);
    return traceExecs(trace, [await builtProgram(), ...args]);
  }
}
