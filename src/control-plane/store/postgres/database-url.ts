import { readFileSync } from 'node:fs';
import tls, { type ConnectionOptions } from 'node:tls';
import { Secret } from '../../../core/crypto/secret.ts';
import { InvalidValue, WrongUsage } from '../../../core/errors/index.ts';
import { isLoopback } from '../../../core/net/loopback.ts';
import { trustSystem } from '../../../core/tls/trust-system.ts';

/** A PostgreSQL database, and how it is reached. What is left out here the driver takes from where libpq would. */
export interface DatabaseTarget {
  /** `HOST:PORT/NAME`, to be shown: it holds no secret. */
  readonly redactedUrl: string;
  /** A name, an address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user?: string;
  readonly password?: Secret;
  /** False for a connection in the clear. */
  readonly tls: false | DatabaseTlsFiles;
}

/** Paths of PEM files; without `ca`, the certificate authorities that Node and this machine trust. */
interface DatabaseTlsFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/**
 * Parses `postgres://[USER[:PASSWORD]@]HOST[:PORT]/NAME`, or `postgres:///NAME?host=FOLDER` for a Unix socket. Beyond this machine
 * the connection is TLS with a certificate that is checked, unless the URL says `sslmode=disable`. Errors never show the URL.
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

/** What Node needs for TLS with this database; reads the files. */
export function tlsOptions({ host, tls: files }: DatabaseTarget): ConnectionOptions | false {
  if (files === false) return false;
  if (files.ca === undefined) trustSystem(tls);
  const read = (path: string | undefined, name: string) => path && { [name]: readPem(path) };
  // The driver names no host for a certificate to match when the host is an address.
  return { host, ...read(files.ca, 'ca'), ...read(files.cert, 'cert'), ...read(files.key, 'key') };
}

const known = ['host', 'port', 'user', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey'];

/** A parameter that is misspelt must not pass: it may be the one that turns the checking of certificates on. */
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
