import { readFileSync } from 'node:fs';
import tls, { type ConnectionOptions } from 'node:tls';
import { Secret } from '../../../core/crypto/secret.ts';
import { InvalidValue, WrongUsage } from '../../../core/errors/index.ts';
import { isLoopback } from '../../../core/net/endpoint.ts';
import { trustSystem } from '../../../core/tls/trust-system.ts';

/** A PostgreSQL database. The driver takes missing values from the same places as libpq. */
export interface DatabaseTarget {
  /** `HOST:PORT/NAME`, safe to show: it contains no secret. */
  readonly redactedUrl: string;
  /** A name, an address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user?: string;
  readonly password?: Secret;
  /** False for an unencrypted connection. */
  readonly tls: false | DatabaseTlsFiles;
}

/** Paths of PEM files. Without `ca`, the authorities that Node and this host trust apply. */
interface DatabaseTlsFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/**
 * Parses `postgres://[USER[:PASSWORD]@]HOST[:PORT]/NAME`, or `postgres:///NAME?host=FOLDER` for a
 * Unix socket. Connections to other hosts use TLS with certificate verification, unless the URL has
 * `sslmode=disable`. Errors never show the URL.
 */
export function parseDatabaseUrl(url: Secret): DatabaseTarget {
  const parsed = URL.parse(url.reveal());
  if (parsed === null || !/^postgres(ql)?:$/.test(parsed.protocol)) throw wrong('is not a PostgreSQL URL');
  const parameters = readParameters(parsed.searchParams);
  const host = parameters.get('host') ?? decode(parsed.hostname).replace(/^\[(.*)\]$/, '$1');
  const database = decode(parsed.pathname.slice(1));
  const port = Number(parameters.get('port') ?? (parsed.port || '5432'));
  if (!(port >= 1 && port <= 65535)) throw wrong('has no port from 1 to 65535');
  if (host === '') throw wrong('names no host');
  if (database === '' || database.includes('/')) throw wrong('names no database');
  const user = parameters.get('user') ?? decode(parsed.username);
  const password = decode(parsed.password);
  return {
    redactedUrl: `${host.includes(':') ? `[${host}]` : host}:${port}/${database}`,
    ...{ host, port, database, tls: readTls(parameters, host) },
    ...(user !== '' && { user }),
    ...(password !== '' && { password: new Secret(password) }),
  };
}

/** Returns Node's TLS options for this database. Reads the files. */
export function tlsOptions({ host, tls: files }: DatabaseTarget): ConnectionOptions | false {
  if (files === false) return false;
  if (files.ca === undefined) trustSystem(tls);
  const read = (path: string | undefined, name: string) => path && { [name]: readPem(path) };
  // If the host is an address, the driver passes no name to match with the certificate.
  return { host, ...read(files.ca, 'ca'), ...read(files.cert, 'cert'), ...read(files.key, 'key') };
}

const known = ['host', 'port', 'user', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey'];

/** Refuses misspelt parameters: one of them might be meant to enable certificate verification. */
function readParameters(given: URLSearchParams): Map<string, string> {
  const strange = [...given.keys()].find((name) => !known.includes(name));
  if (strange === 'password') throw wrong('has its password in a parameter');
  if (strange !== undefined) throw wrong(`has a parameter that is not one of ${known.join(', ')}`);
  return new Map(given);
}

function readTls(parameters: ReadonlyMap<string, string>, host: string): DatabaseTarget['tls'] {
  const mode = parameters.get('sslmode') ?? (host.startsWith('/') || isLoopback(host) ? 'disable' : 'verify-full');
  const [ca, cert, key] = ['sslrootcert', 'sslcert', 'sslkey'].map((name) => parameters.get(name));
  if (mode === 'verify-full') return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
  if (mode !== 'disable') throw wrong('has an sslmode that is neither verify-full nor disable');
  if (ca ?? cert ?? key) throw wrong('names certificates, and no sslmode=verify-full to use them');
  return false;
}

function readPem(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new WrongUsage(`the URL of --database names ${path}, which cannot be read (${code}); check the path`);
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong('has a broken % escape');
  }
}

function wrong(rule: string): InvalidValue {
  return new InvalidValue(
    '--database',
    undefined,
    rule,
    'write postgres://USER@HOST/NAME, or file:PATH of a file with it',
  );
}
