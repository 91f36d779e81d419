import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { builtProgram } from '../lab/built-program.ts';
import { CommandServer } from '../lab/command-server.ts';
import { memory } from '../lab/memory.ts';
import { type Outcome, Process } from '../lab/process.ts';

/** What a command of an administrator is run with. */
export interface AdminShellOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** An administrator with the built program and a home of their own, on loopback. */
export class AdminShell {
  readonly folder: string;
  readonly #program: string;
  /** Of each of its commands. */
  readonly environment: Readonly<Record<string, string>>;
  #commands: CommandServer | undefined;

  private constructor(folder: string, program: string) {
    this.folder = folder;
    this.#program = program;
    this.environment = {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      XDG_CONFIG_HOME: join(folder, 'config'),
      LANG: 'C.UTF-8',
    };
  }

  static async open(): Promise<AdminShell> {
    const program = await builtProgram();
    return new AdminShell(await mkdtemp(join(memory, 'cpn-admin-')), program);
  }

  async close(): Promise<void> {
    await this.#commands?.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Writes a file of the folder, and returns its path. */
  async write(name: string, content: string | Buffer): Promise<string> {
    const path = join(this.folder, name);
    await writeFile(path, content, { mode: 0o600 });
    return path;
  }

  /** Runs a command to its end, whatever that is, without a terminal; in a command server, which is one process for all commands. */
  cpn(args: readonly string[], { input = '', env = {} }: AdminShellOptions = {}): Promise<Outcome> {
    this.#commands ??= new CommandServer((argv) => new Process(argv, { env: this.environment, holdInput: true }));
    return this.#commands.run({ args, env, input }, `cpn ${args.join(' ')}`, 40_000);
  }

  /** Runs a command that must succeed, and returns its stdout. */
  async output(args: readonly string[], options: AdminShellOptions = {}): Promise<string> {
    const { exitCode, stdout, stderr } = await this.cpn(args, options);
    if (exitCode !== 0) throw new Error(`cpn ${args.join(' ')} exited with ${exitCode}: ${stderr}`);
    return stdout;
  }

  /** Like {@link output} with `--json`: stdout must be one document and nothing else. */
  async json(args: readonly string[], options: AdminShellOptions = {}) {
    return JSON.parse(await this.output([...args, '--json'], options));
  }

  /** Starts a command, and leaves it running. */
  spawn(args: readonly string[], options: { env?: Readonly<Record<string, string>> } = {}): Process {
    return new Process([this.#program, ...args], { env: { ...this.environment, ...options.env } });
  }

  /** Runs a command that must fail with nothing on stdout; returns its exit code and its stderr. */
  async fail(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const { exitCode, stdout, stderr } = await this.cpn(args, { env });
    if (exitCode === 0 || stdout !== '') throw new Error(`cpn ${args.join(' ')} exited with ${exitCode}: ${stdout}`);
    return { exitCode, stderr };
  }

  /** Runs a command on a terminal, and types or does each answer when its prompt is there; both outputs are its stdout, without colours. */
  async type(
    args: readonly string[],
    dialogue: readonly (readonly [RegExp, string | ((found: RegExpExecArray) => Promise<unknown>)])[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<Outcome> {
    const command = [this.#program, ...args].map((word) => `'${word}'`).join(' ');
    // A new terminal has no columns, and would print a prompt one letter a line.
    const session = new Process(['script', '-qefc', `stty rows 40 cols 200; exec ${command}`, '/dev/null'], {
      env: { ...this.environment, SHELL: '/bin/sh', TERM: 'xterm', ...env },
      holdInput: true,
    });
    for (const [question, answer] of dialogue) {
      const found = await session.waitForLine(question);
      if (typeof answer === 'string') session.writeInput(answer);
      else await answer(found);
    }
    const outcome = await session.endWithin(20_000);
    return { ...outcome, stdout: stripVTControlCharacters(outcome.stdout) };
  }
}

/** The embedded control plane on loopback, whose first owner is logged in at the host. */
export async function startPlane(shell: AdminShell) {
  const password = randomBytes(18).toString('base64url');
  const passwordFile = await shell.write('owner-password', password);
  const owner = ['--owner-email', 'owner@example.net', '--owner-password-file', passwordFile];
  const data = join(shell.folder, 'data');
  const server = shell.spawn(['control-plane', 'serve', '--listen', '127.0.0.1:0', '--data', data, ...owner]);
  const [, url = ''] = await server.waitForLine(/control plane listening on (http:\S+)/);
  await shell.output(['login', '--api', url, '--email', 'owner@example.net', '--password-file', passwordFile]);
  return { server, url, email: 'owner@example.net', password };
}
