import { openDoctor } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { jsonFlag } from '../input/flags.ts';
import { makeSecretFile } from '../input/secret-file.ts';
import { note, printJson, progress } from '../output/output.ts';
import type { Command } from '../parse/command.ts';

export const debugBundle: Command = {
  name: 'debug bundle',
  argument: { usage: '[file]', summary: 'file to write; must not exist' },
  summary: 'Write diagnostics of this host to one file, without secrets',
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
    note(`${file} will contain addresses, names and packet rules of this host, but no keys or tokens:`);
    note(names.map((name) => `  ${name}`).join('\n'));
    const content = await packBundle(bundle, now);
    await (await makeSecretFile(file, 'debug bundle')).write(content);
    if (input.switch('json')) printJson({ file, contents: names });
    else note(`wrote ${file}; mode 0600`);
    return exitCodes.done;
  },
};
