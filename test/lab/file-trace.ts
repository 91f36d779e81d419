import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The system calls that give a file, a folder or a socket its name. */
const naming = 'open,openat,creat,mkdir,mkdirat,link,linkat,rename,renameat,renameat2,symlink,symlinkat,mknodat,bind';

/**
 * The command that runs `argv`, and writes into files of `folder` each call by which it or a child names a file. It ends with `argv`;
 * the trace of a child that outlives it goes on.
 *
 * @param name of the run, which no other has
 */
export function traceFiles(folder: string, name: string, argv: readonly string[]): string[] {
  const prefix = join(folder, name);
  return ['strace', '-D', '-ff', '--seccomp-bpf', '-qq', '-s', '4096', '-e', `trace=${naming}`, '-o', prefix, ...argv];
}

/** The paths that came to be by the calls of all traces in a folder, once each; also those that are gone since. */
export async function readCreated(folder: string): Promise<string[]> {
  const names = await readdir(folder);
  const traces = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  return [...new Set(traces.flatMap((trace) => trace.split('\n').flatMap(parseCall)))].toSorted();
}

/** The path that a successful call has made. */
function parseCall(line: string): string[] {
  const [, call = '', args = ''] = /^(\w+)\((.*)\) += \d/.exec(line) ?? [];
  const paths = [...args.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, path = '']) => path);
  if (call.startsWith('open')) return args.includes('O_CREAT') ? paths : [];
  if (call === 'bind') return args.includes('sun_path="') ? paths : [];
  // Of two names the second is the new one.
  return paths.slice(-1);
}
