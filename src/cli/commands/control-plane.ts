import { once } from 'node:events';
import { InvalidValue, WrongUsage } from '../../core/errors.ts';
import type { Command } from '../command.ts';
import { exitCodes } from '../exit-code.ts';
import type { Input } from '../input.ts';
import { openLog } from '../log.ts';
import { note } from '../output.ts';
import { readSecretFile } from '../secrets.ts';

export const serveControlPlane: Command = {
  name: 'control-plane serve',
  summary: 'Serve the embedded control plane until stopped',
  flags: {
    listen: { kind: 'text', value: 'HOST:PORT', summary: 'where to listen', byDefault: '127.0.0.1:8787' },
    data: { kind: 'text', value: 'DIR', summary: 'folder of the database', byDefault: '/var/lib/cpn-control-plane' },
    'owner-email': { kind: 'text', value: 'EMAIL', summary: 'make this first owner when there is no user yet' },
    'owner-password-file': {
      kind: 'text',
      value: 'PATH',
      summary: "a file that holds the first owner's password alone",
    },
    'allow-public-routes': { kind: 'switch', summary: 'let networks advertise public routes and 0.0.0.0/0' },
  },
  examples: ['cpn control-plane serve --owner-email me@example.net --owner-password-file ./password'],
  async run(input) {
    const { serve } = await import('../../control-plane/serve.ts');
    const server = await serve({
      ...parseListen(input.text('listen') ?? '127.0.0.1:8787'),
      dataDir: input.text('data') ?? '/var/lib/cpn-control-plane',
      owner: await readOwner(input),
      allowPublicRoutes: input.switch('allow-public-routes'),
      logger: openLog(input, 'info'),
    });
    note(`control plane listening on ${server.url}`);
    await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
    await server.close();
    return exitCodes.done;
  },
};

function parseListen(text: string): { host: string; port: number } {
  const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]+)):(0|[1-9][0-9]{0,4})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || Number(port) > 65535) {
    throw new InvalidValue('--listen', text, 'is not an address to listen on', 'write HOST:PORT, like 127.0.0.1:8787');
  }
  return { host, port: Number(port) };
}

async function readOwner(input: Input) {
  const email = input.text('owner-email');
  const file = input.text('owner-password-file');
  if (email === undefined && file === undefined) return null;
  if (email === undefined || file === undefined) {
    throw new WrongUsage('--owner-email and --owner-password-file go together; give both, or neither');
  }
  return { email, password: await readSecretFile(file, "the owner's password") };
}
