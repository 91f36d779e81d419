import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { memory } from '../lab/memory.ts';

/** A certificate with its key, both in PEM and in files. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export interface Wanted {
  /** The common name. */
  readonly name: string;
  /** Signed by itself without one. */
  readonly issuer?: Issued;
  /** X.509v3 extensions as openssl.cnf has them; by default those of a server named `localhost`. */
  readonly extensions?: readonly string[];
  /** Days from now. */
  readonly days?: readonly [from: number, to: number];
  readonly keyType?: 'ec' | `rsa:${number}`;
  readonly digest?: 'sha256' | 'sha1';
}

export const ofAuthority = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign'];
export const ofServer = ['basicConstraints=CA:FALSE', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];

function makeFolder(): string {
  const folder = mkdtempSync(join(memory, 'cpn-certificates-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Issues certificates by openssl, in this folder or one that is gone with the test. */
export function openAuthority(folder = makeFolder()) {
  writeFileSync(join(folder, 'index.txt'), '');
  let count = 0;
  const openssl = (...argv: string[]) => execFileSync('openssl', argv, { cwd: folder, stdio: 'pipe' });
  return {
    issue({ name, issuer, extensions = ofServer, days = [-1, 90], keyType = 'ec', digest = 'sha256' }: Wanted): Issued {
      count += 1;
      const [certFile, keyFile, request, config] = ['crt', 'key', 'csr', 'cnf'].map((end) =>
        join(folder, `${count}.${end}`),
      ) as [string, string, string, string];
      const key = keyType === 'ec' ? ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] : [keyType];
      openssl('req', '-newkey', ...key, '-nodes', '-keyout', keyFile, '-out', request, '-subj', '/CN=unused');
      writeFileSync(
        config,
        [
          ...['[ca]', 'default_ca=this', '[this]', `new_certs_dir=${folder}`, `database=${folder}/index.txt`],
          ...['unique_subject=no', 'rand_serial=yes', 'policy=any', 'x509_extensions=usual', 'string_mask=utf8only'],
          ...['[any]', 'commonName=supplied', 'organizationName=optional', '[usual]', ...extensions, ''],
        ].join('\n'),
      );
      const by = issuer ? ['-cert', issuer.certFile, '-keyfile', issuer.keyFile] : ['-selfsign', '-keyfile', keyFile];
      const span = ['-startdate', timeIn(days[0]), '-enddate', timeIn(days[1]), '-md', digest];
      openssl(
        'ca',
        '-batch',
        '-notext',
        '-utf8',
        '-config',
        config,
        ...by,
        ...span,
        '-subj',
        `/CN=${name}`,
        '-in',
        request,
        '-out',
        certFile,
      );
      const [cert, privateKey] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')];
      return { cert, key: privateKey, certFile, keyFile };
    },
  };
}

/** As openssl writes a GeneralizedTime. */
function timeIn(days: number): string {
  return `${new Date(Date.now() + days * 86_400_000).toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`;
}
