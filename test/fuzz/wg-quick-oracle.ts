/**
 * wg-quick's own parser, to compare with. Its functions are taken out of the script that is installed, and nothing
 * else of it is run: what they call is a word of the shell, or a function that does nothing.
 *
 * @module
 */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toolFolders } from '../../src/host/process/find-tool.ts';
import { LineServer } from './line-server.ts';

/** What wg-quick understood of a file, one character a byte. */
export interface Understood {
  /** It ended with an error before the end of the file. */
  readonly died: boolean;
  readonly addresses: readonly string[];
  readonly mtu: string;
  readonly dns: readonly string[];
  readonly table: string;
  readonly hooks: readonly string[];
  readonly saveConfig: string;
  /** What it would hand to `wg setconf`. */
  readonly wgConfig: string;
}

/** Of each request its variables as they are in a new shell; `set -e` holds where no other command reads the exit code. */
const script = (functions: string) => `set -o pipefail
shopt -s extglob
export LC_ALL=C
PROGRAM=wg-quick
WG_CONFIG="" INTERFACE="" ADDRESSES=( ) MTU="" DNS=( ) DNS_SEARCH=( ) TABLE=""
PRE_UP=( ) POST_UP=( ) PRE_DOWN=( ) POST_DOWN=( ) SAVE_CONFIG=0 CONFIG_FILE=""
die() { exit 1; }
readlink() { printf '%s\\n' "$2"; }
stat() { printf '0600\\n'; }
command_not_found_handle() { die; }
${functions}
dump() {
  local list
  printf '%s\\0' "$WG_CONFIG" "$MTU" "$TABLE" "$SAVE_CONFIG"
  for list in ADDRESSES DNS DNS_SEARCH PRE_UP POST_UP PRE_DOWN POST_DOWN; do
    local -n items=$list
    printf '%s\\0' "\${#items[@]}" "\${items[@]}"
  done
}
while read -r file; do
  ( set -e; exec 2>&1; parse_options "$file" >/dev/null; shopt -u nocasematch; dump >"$file.parsed" )
  printf '%s\\n' "$?"
done
`;

export class WgQuickOracle {
  readonly #program: LineServer;
  readonly #folder: string;

  private constructor(program: LineServer, folder: string) {
    this.#program = program;
    this.#folder = folder;
  }

  static async start(): Promise<WgQuickOracle> {
    const folder = await mkdtemp(join(tmpdir(), 'cpn-fuzz-'));
    const installed = toolFolders.map((each) => join(each, 'wg-quick')).find((path) => existsSync(path));
    if (installed === undefined) throw new Error('wg-quick was not found on this host; run scripts/setup');
    const text = await readFile(installed, 'utf8');
    const program = join(folder, 'oracle.bash');
    await writeFile(program, script(['parse_options', 'read_bool'].map((name) => findFunction(text, name)).join('\n')));
    const argv = ['/bin/bash', '--noprofile', '--norc', program];
    return new WgQuickOracle(new LineServer(argv, { PATH: '/nonexistent', LC_ALL: 'C' }), folder);
  }

  async understand(text: string): Promise<Understood> {
    const file = join(this.#folder, 'fuzz0.conf');
    await writeFile(file, text);
    const status = await this.#program.request(file);
    const dump = status === '0' ? await readFile(`${file}.parsed`, 'latin1') : '';
    const [wgConfig = '', mtu = '', table = '', saveConfig = '', ...rest] = dump.split('\0');
    const lists = readLists(rest);
    const [addresses = [], dns = [], search = [], ...hooks] = lists;
    return {
      died: status !== '0',
      addresses,
      mtu,
      dns: [...dns, ...search],
      table,
      hooks: hooks.flat(),
      saveConfig,
      wgConfig,
    };
  }

  async stop(): Promise<void> {
    await this.#program.close();
    await rm(this.#folder, { recursive: true });
  }
}

/** A function of a script, from its name to the brace at the beginning of a line. */
function findFunction(text: string, name: string): string {
  const [found] = new RegExp(`^${name}\\(\\) \\{\\n.*?^\\}$`, 'ms').exec(text) ?? [];
  if (found === undefined) throw new Error(`this wg-quick has no function ${name}`);
  return found;
}

/** Lists with their lengths in front. Of an empty one `printf` prints an empty word, too. */
function readLists(words: readonly string[]): string[][] {
  const lists: string[][] = [];
  for (let at = 0; at < words.length - 1; ) {
    const length = Number(words[at]);
    lists.push(words.slice(at + 1, at + 1 + length));
    at += 1 + length;
  }
  return lists;
}
