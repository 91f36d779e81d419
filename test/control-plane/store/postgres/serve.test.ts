import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { makeCertificate } from '../../../api/certificate.ts';
import { failServing, makeFolder, owner, startServing } from '../../../cli/commands/served-process.ts';
import { call } from '../../harness.ts';
import { asSuperuser, type PostgresServer, startPostgres, urlOf } from '../../postgres-server.ts';

/** Of a server of the file's own: it has TLS, and would wait so long for a password. */
const [mine, others] = [makeCertificate(), makeCertificate()];
const options = {
  settings: ['ssl=on', 'ssl_cert_file=../server.pem', 'ssl_key_file=../key.pem', 'authentication_timeout=600s'],
  files: { 'server.pem': mine.cert, 'key.pem': mine.key },
};
let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres(options);
});
afterAll(() => server.remove());

beforeEach(() => asSuperuser(server, (client) => client.query('create database net')));
afterEach(() => asSuperuser(server, (client) => client.query('drop database net with (force)')));

const login = (url: string) => call(url, 'POST', '/api/auth/login', { body: owner });

/** The flag for a URL, in a file as one with a password must be. */
function databaseFlag(folder: string, url: string): [string, string] {
  const file = join(folder, 'url');
  writeFileSync(file, url);
  return ['--database', `file:${file}`];
}

test('the program serves from a database, ends on SIGTERM, and starts again on the same database', async () => {
  const folder = makeFolder();
  for (let start = 0; start < 2; start += 1) {
    const served = await startServing(folder, '--database', urlOf(server, 'net'));
    expect((await login(served.url)).status).toBe(200);
    served.child.kill('SIGTERM');
    expect(await served.ended()).toBe(0);
  }
  const { rows } = await asSuperuser(server, (client) => client.query('select count(*) from sessions'), 'net');
  expect(rows).toEqual([{ count: '2' }]);
});

test('TLS is used with a certificate that is checked, and nothing goes over a connection with another one', async () => {
  const folder = makeFolder();
  const url = (authority: string) => {
    const file = join(folder, 'authority.pem');
    writeFileSync(file, authority);
    const where = `localhost:${server.port}/net?sslmode=verify-full&sslrootcert=${file}`;
    return databaseFlag(folder, `postgres://cpn:${server.password}@${where}`);
  };
  const { url: served } = await startServing(folder, ...url(mine.cert));
  expect((await login(served)).status).toBe(200);
  const used = `select distinct ssl from pg_stat_ssl join pg_stat_activity using (pid) where datname = 'net'
    and application_name = 'cpn-control-plane'`;
  expect((await asSuperuser(server, (client) => client.query(used))).rows).toEqual([{ ssl: true }]);
  const { code, said } = await failServing(folder, ...url(others.cert));
  expect([code, said]).toEqual([
    2,
    expect.stringMatching(/certificate.*; check the host, the port and the certificate/),
  ]);
});

test('without a file of a CA, TLS accepts a CA in the store of the machine, and no other one', async () => {
  const folder = makeFolder();
  const where = `localhost:${server.port}/net?sslmode=verify-full`;
  const flags = databaseFlag(folder, `postgres://cpn:${server.password}@${where}`);
  const authority = (certificate: string) => {
    const file = join(folder, 'authority.pem');
    writeFileSync(file, certificate);
    vi.stubEnv('SSL_CERT_FILE', file);
  };
  onTestFinished(() => void vi.unstubAllEnvs());
  authority(others.cert);
  const { code, said } = await failServing(folder, ...flags);
  expect([code, said]).toEqual([2, expect.stringContaining('certificate')]);
  authority(mine.cert);
  const { url } = await startServing(folder, ...flags);
  expect((await login(url)).status).toBe(200);
});

test('without the password that is asked for the program ends at once, and says where to put it', async () => {
  const { code, said } = await failServing(makeFolder(), '--database', `postgres://cpn@127.0.0.1:${server.port}/net`);
  expect([code, said]).toEqual([2, expect.stringMatching(/PGPASSWORD/)]);
});
