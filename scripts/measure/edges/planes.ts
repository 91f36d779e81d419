import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeCertificate } from '../../../test/api/certificate.ts';
import { type PgBouncer, startPgBouncer } from '../../../test/control-plane/pgbouncer.ts';
import { type PostgresServer, startPostgres, urlOf } from '../../../test/control-plane/postgres-server.ts';
import { type ControlPlane, serveControlPlane, startControlPlane } from '../../../test/lab/control-plane.ts';
import { Daemon } from '../../../test/lab/daemon.ts';
import type { Lab } from '../../../test/lab/lab.ts';
import { Owner } from '../../../test/lab/owner.ts';
import {
  type CertificateFiles,
  type ProxiedWay,
  startReverseProxies,
  tlsWay,
  untouchedWays,
} from '../../../test/lab/reverse-proxies.ts';

/** A control plane, where its owner makes changes. */
export interface ChangedPlane {
  readonly plane: ControlPlane;
  readonly owner: Owner;
}

/** A process of a control plane that hosts connect to, along some ways. */
export interface Serving extends ChangedPlane {
  /** The log of the process that hosts connect to. */
  readonly log: Daemon;
  readonly ways: readonly ProxiedWay[];
}

/** Processes on one PostgreSQL database; changes are made at a fourth one. */
export interface PooledPlanes extends ChangedPlane {
  readonly serving: readonly [alone: Serving, direct: Serving, pooled: Serving];
  readonly pooler: PgBouncer;
  /** Starts one more process behind the pooler, and returns its exit code and its log. */
  refuse(): Promise<{ exitCode: number | null; text: string }>;
  remove(): Promise<void>;
}

const proxies = '203.0.113.2';
const tls = '203.0.113.3';
const pooled = '203.0.113.4';
const email = 'owner@example.net';

/**
 * The certificates of the proxies and of the control plane with TLS, in files of this folder, and
 * one file with both.
 */
export async function writeCertificates(folder: string) {
  const write = async (name: string): Promise<CertificateFiles & { readonly text: string }> => {
    const made = makeCertificate({ name });
    const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
    await writeFile(cert, made.cert);
    await writeFile(key, made.key, { mode: 0o600 });
    return { cert, key, text: made.cert };
  };
  const [ofProxies, ofPlane] = [await write(proxies), await write(tls)];
  const both = join(folder, 'both.pem');
  await writeFile(both, ofProxies.text + ofPlane.text);
  return { ofProxies, ofPlane, both };
}

/**
 * A control plane on SQLite, which hosts reach directly and through the proxies of Debian. The
 * direct way is the first.
 */
export async function startProxied(lab: Lab, certificate: CertificateFiles): Promise<Serving> {
  const plane = await startControlPlane(lab, '203.0.113.1', ['--trust-proxy', proxies]);
  const host = await lab.addHost('proxies', { address: `${proxies}/24` });
  const compressing = await startReverseProxies(host, '203.0.113.1:8787', certificate);
  const ways = [
    { name: 'directly', url: plane.url },
    ...untouchedWays(host),
    ...compressing.map(({ name, url }) => ({ name: name.replace('compressing', 'compressing JSON'), url })),
    tlsWay(host),
  ];
  return { plane, owner: new Owner(plane), log: new Daemon(plane.process), ways };
}

/** A control plane that has TLS itself. */
export async function startTlsPlane(lab: Lab, { cert, key }: CertificateFiles): Promise<Serving> {
  const host = await lab.addHost('tls', { address: `${tls}/24` });
  const [url, password] = [`https://${tls}:8787`, join(host.homeDir, 'password')];
  await writeFile(password, randomBytes(18).toString('base64url'), { mode: 0o600 });
  const process = await serveControlPlane(host, tls, password, ['--tls-cert', cert, '--tls-key', key]);
  await host.cpn(['login', '--api', url, '--email', email, '--password-file', password]);
  const plane = { host, url, process, cpn: (args: readonly string[]) => host.cpn(args) };
  return { plane, owner: new Owner(plane), log: new Daemon(process), ways: [{ name: 'built-in TLS', url }] };
}

/**
 * Four processes on one PostgreSQL. Changes are made at the first. Hosts connect to it, to one that
 * is connected to PostgreSQL, and to one that is connected to PgBouncer in session mode.
 */
export async function startPooled(lab: Lab): Promise<PooledPlanes> {
  const server: PostgresServer = await startPostgres();
  const pooler = await startPgBouncer(server, 'session');
  const host = await lab.addHost('pooled', { address: `${pooled}/24` });
  const password = join(host.homeDir, 'password');
  await writeFile(password, randomBytes(18).toString('base64url'), { mode: 0o600 });
  const spawn = (port: number, database: string) => {
    const owner = ['--owner-email', email, '--owner-password-file', password];
    const where = ['--listen', `${pooled}:${port}`, '--database', database];
    return host.spawnCpn(['control-plane', 'serve', ...where, ...owner]);
  };
  const direct = urlOf(server, 'postgres');
  const serve = async (port: number, database: string): Promise<ControlPlane> => {
    const process = await spawn(port, database);
    await process.waitForLine(/listening on/, 180_000);
    return { host, url: `http://${pooled}:${port}`, process, cpn: (args) => host.cpn(args) };
  };
  const first = await serve(8787, direct);
  await host.cpn(['login', '--api', first.url, '--insecure-http', '--email', email, '--password-file', password]);
  const changed: ChangedPlane = { plane: first, owner: new Owner(first) };
  const at = (name: string, plane: ControlPlane): Serving => {
    return { ...changed, log: new Daemon(plane.process), ways: [{ name, url: plane.url }] };
  };
  return {
    ...changed,
    pooler,
    serving: [
      at('PostgreSQL, the process of the change', first),
      at('PostgreSQL, another process', await serve(8788, direct)),
      at('PgBouncer in session mode, another process', await serve(8789, pooler.url('postgres'))),
    ],
    async refuse() {
      const { exitCode, stderr } = await (await spawn(8790, pooler.url('postgres'))).endWithin(60_000);
      return { exitCode, text: stderr };
    },
    async remove() {
      await pooler.remove();
      await server.remove();
    },
  };
}
