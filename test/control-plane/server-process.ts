/**
 * A control plane in a process of its own, for tests that kill it: argv is the data folder and, where another user is to be the first,
 * the owner's e-mail address; CPN_TEST_DATABASE is the URL of the database that is used instead of the folder; stdout is the URL, or
 * the error with which it did not start.
 */
import { pino } from 'pino';
import { serve } from '../../src/control-plane/serve.ts';
import { Secret } from '../../src/core/secret.ts';

const [, , dataDir = '', email = 'owner@example.net'] = process.argv;
const { CPN_TEST_DATABASE: database } = process.env;
try {
  const { url } = await serve({
    host: '127.0.0.1',
    port: 0,
    dataDir,
    database: database === undefined ? null : new Secret(database),
    owner: { email, password: new Secret('correct horse battery staple') },
    allowPublicRoutes: false,
    limits: { failedEnrollments: 1000 },
    logger: pino({ level: 'info' }, pino.destination(2)),
  });
  process.stdout.write(`${url}\n`);
} catch (error) {
  process.stdout.write(`${error}\n`);
  process.exitCode = 1;
}
