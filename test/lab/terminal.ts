import type { Host } from './host.ts';

/** What a program left on a terminal. */
export interface Session {
  readonly exitCode: number | null;
  /** All that the terminal was sent. */
  readonly raw: string;
  /** What it shows in the end, without colours. */
  readonly rows: readonly string[];
}

interface TerminalOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly columns?: number;
  /** Prompts, each with the answer to type. */
  readonly dialogue?: readonly (readonly [RegExp, string])[];
}

/**
 * Runs a line of shell in the home of a host, on a terminal of its own, where `cpn` is the built program. Types each answer of the
 * dialogue when its prompt is there, and nothing after them.
 */
export async function onTerminal(
  host: Host,
  program: string,
  line: string,
  { env = {}, columns = 100, dialogue }: TerminalOptions = {},
): Promise<Session> {
  const script = `cd; stty cols ${columns} rows 40; cpn() { "$CPN_PROGRAM" "$@"; }; ${line}`;
  const session = host.spawn(['script', '-qec', script, '/dev/null'], {
    env: { SHELL: '/bin/sh', TERM: 'xterm', CPN_PROGRAM: program, ...env },
    holdInput: dialogue !== undefined,
  });
  for (const [prompt, answer] of dialogue ?? []) {
    await session.waitForLine(prompt);
    session.writeInput(answer);
  }
  const { stdout, exitCode } = await session.endWithin(60_000);
  return { exitCode, raw: stdout, rows: show(stdout) };
}

/** As a terminal with "up a row", "clear the rest of the row" and no other control sequence. */
function show(text: string): string[] {
  const rows: string[] = [''];
  let row = 0;
  for (const [token] of text.matchAll(/\p{Cc}\[[?0-9;]*[A-Za-z]|./gsu)) {
    if (token === '\x1b[A') row = Math.max(0, row - 1);
    else if (token === '\n') row += 1;
    else if (token === '\x1b[K') rows[row] = '';
    else if (!/\p{Cc}/u.test(token)) rows[row] = (rows[row] ?? '') + token;
  }
  return rows.map((each) => each ?? '').filter((each, at) => each !== '' || at < rows.length - 1);
}
