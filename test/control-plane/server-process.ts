/** A control plane in a process of its own, for tests that kill it: argv is the data folder, stdout the URL. */
import { pino } from 'pino';
import { serve } from '../../src/control-plane/serve.ts';
import { Secret } from '../../src/core/secret.ts';

const [, , dataDir = ''] = process.argv;
const { url } = await serve({
  host: '127.0.0.1',
  port: 0,
  dataDir,
  owner: { email: 'owner@example.net', password: new Secret('correct horse battery staple') },
  allowPublicRoutes: false,
  logger: pino({ level: 'silent' }),
});
process.stdout.write(`${url}\n`);
