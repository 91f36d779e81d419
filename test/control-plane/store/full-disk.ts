/**
 * In a mount namespace of its own: a control plane whose database is on a small disk that is full for a while. Prints what was seen,
 * as JSON.
 *
 * @module
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pino } from 'pino';
import { serve } from '../../../src/control-plane/serve.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';

const disk = '/mnt';
execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk], { stdio: ['ignore', 'inherit', 'inherit'] });

const lines: string[] = [];
const password = randomBytes(12).toString('hex');
const email = 'owner@example.net';
const server = await serve({
  host: '127.0.0.1',
  port: 0,
  dataDir: join(disk, 'data'),
  owner: { email, password: new Secret(password) },
  allowPublicRoutes: false,
  logger: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
  passwordCost: { N: 16, r: 1, p: 1 },
});
const login = await call('POST', '/api/auth/login', { email, password });
const session = login.body.data.access_token;
// A personal token, whose first use is written down.
const token = (await call('POST', '/api/auth/tokens', { name: 'reader' }, session)).body.data.access_token;

// The next use of the session is due to be written too.
const database = new DatabaseSync(join(disk, 'data', 'control-plane.db'));
database.prepare('update sessions set last_used_at = ?').run(new Date(Date.now() - 600_000).toISOString());
database.close();

const filler = join(disk, 'filler');
fill();
const seen = {
  change: await makeNetwork(),
  ready: await call('GET', '/readyz'),
  healthy: (await call('GET', '/healthz')).status,
  read: (await call('GET', '/api/networks', undefined, token)).status,
  readInSession: (await call('GET', '/api/networks', undefined, session)).status,
  log: lines.map((line) => JSON.parse(line)).filter(({ level }) => level >= 40),
};
rmSync(filler);
const after = { change: (await makeNetwork()).status, ready: (await call('GET', '/readyz')).status };
await server.close();
process.stdout.write(JSON.stringify({ ...seen, after }));

function makeNetwork() {
  // Larger than what is left of a page of the log.
  const body = { name: 'office', description: 'x'.repeat(1000), private_cidr: '10.77.0.0/24' };
  return call('POST', '/api/networks', body, session);
}

async function call(method: string, path: string, body?: object, bearer?: string) {
  const headers = {
    ...(body && { 'content-type': 'application/json' }),
    ...(bearer && { authorization: `Bearer ${bearer}` }),
  };
  const response = await fetch(server.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  // biome-ignore lint/suspicious/noExplicitAny: bodies of several shapes.
  return { status: response.status, body: (await response.json()) as any };
}

/** Leaves no block, also none in the part of the log that is there and is written again. */
function fill(): void {
  for (let size = 4 * 1024 * 1024; size >= 4096; size /= 2) {
    for (;;) {
      try {
        writeFileSync(filler, Buffer.alloc(size), { flag: 'a' });
      } catch {
        break;
      }
    }
  }
}
