import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { eventually } from './eventually.ts';

/** The execve call of a program. */
export interface Exec {
  readonly pid: number;
  readonly path: string;
  readonly argv: readonly string[];
  /** Each is `NAME=value`. */
  readonly env: readonly string[];
}

/**
 * The command that runs `argv` and writes into `file` each program that it and its children start, with all of arguments and
 * environment. A scan of /proc may miss a process that lives for a millisecond.
 */
export function traceExecs(file: string, argv: readonly string[]): string[] {
  return [
    'strace',
    '-D',
    '-ff',
    '--seccomp-bpf',
    '-qq',
    '-xx',
    '-v',
    '-s',
    '1000000',
    '-e',
    'trace=execve',
    '-o',
    file,
    ...argv,
  ];
}

/**
 * What {@link traceExecs} wrote, and of each process how it began; a file that nothing was written to is an error. strace writes a long
 * line in parts, and is behind the programs it traces: what is cut short is read again. It leaves a program that outlives the command, and
 * says so, maybe as that program starts.
 */
export function readExecs(file: string): Promise<Exec[]> {
  return eventually(`a whole trace in ${file}`, () => readWritten(file));
}

async function readWritten(file: string): Promise<Exec[]> {
  const prefix = `${file.slice(dirname(file).length + 1)}.`;
  const names = (await readdir(dirname(file))).filter((name) => name.startsWith(prefix));
  const execs: Exec[] = [];
  for (const name of names) {
    const text = await readFile(join(dirname(file), name), 'utf8');
    for (const line of text.split('\n').filter((each) => each.startsWith('execve('))) {
      const [, path = '', argv = '', env = ''] =
        /^execve\("([^"]*)", \[(.*)\], \[(.*)\](?:\)| <(?:unfinished|detached))/.exec(line) ?? [];
      if (path === '') throw new Error(`strace wrote what cannot be read: ${line.slice(0, 100)} … ${line.slice(-100)}`);
      execs.push({
        pid: Number(name.slice(prefix.length)),
        path: decode(path),
        argv: strings(argv),
        env: strings(env),
      });
    }
  }
  if (execs.length === 0) throw new Error(`strace saw no program start: ${file}`);
  return execs;
}

/** `"\x61\x62", "\x63"` as two texts. */
function strings(list: string): string[] {
  return [...list.matchAll(/"([^"]*)"(\.\.\.)?/g)].map(([, text = '', cut]) => {
    if (cut !== undefined) throw new Error('strace cut a text short');
    return decode(text);
  });
}

/** Strace -xx writes each byte in hexadecimal digits, so that nothing is left to guess. */
function decode(text: string): string {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex').toString();
}
