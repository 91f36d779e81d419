import { columnsOf } from '../output/terminal/fit.ts';

/** What a prompt shows, and what is wrong with an answer. */
interface Prompt {
  readonly message: string;
  readonly validate?: (typed: string | undefined) => string | undefined;
}

/**
 * Prompts on stderr, and reads a line of the terminal; a password is not shown.
 *
 * @returns null where the prompt is cancelled: by Ctrl-C, by Ctrl-D, and where the terminal is gone
 */
export async function prompt(kind: 'text' | 'password', { message, validate }: Prompt): Promise<string | null> {
  const prompts = await import('@clack/prompts');
  const { stdin, stderr } = process;
  // The library breaks lines at the columns of its output, where they are 0 after each character.
  stderr.columns = columnsOf(stderr);
  const gone = new AbortController();
  // The library waits on: without this the process ends, with exit code 0.
  const onData = (data: Buffer | string) => {
    if (data.toString().includes('\x04')) gone.abort();
  };
  const onEnd = () => gone.abort();
  // Enter is a line feed if it was typed before the prompt. The library then drops the line and waits on.
  const onKey = (_text: unknown, key: { name?: string }) => {
    if (key.name === 'enter') key.name = 'return';
  };
  // After Ctrl-Z and `fg` Node leaves the terminal paused, and so the process would end.
  const onContinue = () => {
    setImmediate(() => {
      stderr.write(`${message}\n`);
      stdin.resume();
    });
  };
  process.on('SIGCONT', onContinue);
  stdin.prependListener('keypress', onKey);
  stdin.on('data', onData).once('end', onEnd).once('close', onEnd);
  try {
    const options = { message, output: stderr, signal: gone.signal, ...(validate && { validate }) };
    const answer = await prompts[kind](options);
    return typeof answer === 'string' ? answer : null;
  } finally {
    process.off('SIGCONT', onContinue);
    stdin.pause();
    stdin.off('keypress', onKey).off('data', onData).off('end', onEnd).off('close', onEnd);
  }
}
