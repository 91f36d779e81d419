import { columnsOf } from '../output/terminal/fit.ts';

interface Prompt {
  readonly message: string;
  readonly validate?: (typed: string | undefined) => string | undefined;
}

/** Prompts on stderr. @returns null after Ctrl-C or Ctrl-D, or if the terminal is lost */
export async function prompt(kind: 'text' | 'password', { message, validate }: Prompt): Promise<string | null> {
  const prompts = await import('@clack/prompts');
  const { stdin, stderr } = process;
  // The library wraps at the columns of its output. With 0 columns, it wraps after each character.
  stderr.columns = columnsOf(stderr);
  const gone = new AbortController();
  // The library ignores Ctrl-D and a lost terminal, and then the process ends with exit code 0.
  const onData = (data: Buffer | string) => {
    if (data.toString().includes('\x04')) gone.abort();
  };
  const onEnd = () => gone.abort();
  // Enter typed before the prompt arrives as a line feed, for which the library drops the line.
  const onKey = (_text: unknown, key: { name?: string }) => {
    if (key.name === 'enter') key.name = 'return';
  };
  // After Ctrl-Z and `fg`, Node leaves the terminal paused, and the process would end.
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
