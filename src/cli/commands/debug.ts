import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Command, jsonFlag } from '../command.ts';
import { openDoctor } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { note, printJson, progress } from '../output.ts';
import { makeSecretFile } from '../secret-file.ts';

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
    const content = await promisify(gzip)(packBundle(bundle, now));
    await (await makeSecretFile(file, 'debug bundle')).write(content);
    if (input.switch('json')) printJson({ file, contents: names });
    else note(`wrote ${file}; only its owner may read it`);
    return exitCodes.done;
  },
};
