import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { DiskFailed, WrongUsage } from '../../core/errors.ts';
import { type Command, jsonFlag } from '../command.ts';
import { openDoctor } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { note, printJson, progress } from '../output.ts';

export const debugBundle: Command = {
  name: 'debug bundle',
  argument: { usage: '[file]', summary: 'a file that is not there yet' },
  summary: 'Gather what somebody who is to help needs to see of this host, without secrets, in one file',
  flags: jsonFlag,
  examples: ['cpn debug bundle', 'cpn debug bundle /tmp/edge-1.tar.gz'],
  async run(input) {
    const { gatherBundle, packBundle } = await import('../debug-bundle.ts');
    const tools = await openDoctor(input);
    progress('examining this host and its networks');
    const bundle = await gatherBundle(tools);
    const now = tools.now();
    const file = input.argument('file') ?? `cpn-debug-${now.toISOString().replace(/[-:]|\.\d+/g, '')}.tar.gz`;
    const names = [...bundle.keys()];
    note(`${file} is to hold, without keys and tokens, but with addresses, names and packet rules of this host:`);
    note(names.map((name) => `  ${name}`).join('\n'));
    await writeNew(file, await promisify(gzip)(packBundle(bundle, now)));
    if (input.switch('json')) printJson({ file, contents: names });
    else note(`wrote ${file}; only its owner may read it`);
    return exitCodes.done;
  },
};

/** @throws WrongUsage where there is something at that place */
async function writeNew(file: string, content: Uint8Array): Promise<void> {
  try {
    await writeFile(file, content, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      throw new WrongUsage(`${file} is there already, and is not overwritten; name another file`);
    }
    throw new DiskFailed('write', file, error as NodeJS.ErrnoException);
  }
}
