import { open, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { InvalidValue } from '../../core/errors/index.ts';
import { createFileReceiver, createOutputReceiver } from './receivers.ts';
import type { AuditReceiver } from './send-audit.ts';
import { createSyslogReceiver } from './write-syslog.ts';

/** The usual port of syslog over TCP, and the one of TLS (RFC 5425, 4.1). */
const ports = { 'syslog:': 514, 'syslogs:': 6514 } as const;

/**
 * Opens the receiver of `--audit-log`: `-` for standard output, `syslog://HOST:PORT` or
 * `syslogs://HOST:PORT`, or the path of a file, which is created.
 * @throws InvalidValue
 */
export async function openAuditLog(text: string, name: string): Promise<AuditReceiver> {
  if (text === '-') return createOutputReceiver();
  if (/^syslogs?:/.test(text)) return createSyslogReceiver(parseServer(text, name));
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    throw new InvalidValue(
      name,
      text,
      'is no kind of log',
      'give a path, syslog://HOST:PORT, syslogs://HOST:PORT or -',
    );
  }
  const path = resolve(text);
  const isOther = await stat(path).then(
    (found) => !found.isFile(),
    () => false,
  );
  if (isOther) throw new InvalidValue(name, text, 'is no regular file', 'give the path of a file, or of none yet');
  await open(path, 'a', 0o600).then(
    (file) => file.close(),
    ({ code }: NodeJS.ErrnoException) => {
      throw new InvalidValue(name, text, `cannot be written (${code})`, 'check its folder and its permissions');
    },
  );
  return createFileReceiver(path);
}

function parseServer(text: string, name: string) {
  const url = URL.canParse(text) ? new URL(text) : null;
  const rest = url && `${url.username}${url.password}${url.pathname.replace(/^\/$/, '')}${url.search}${url.hash}`;
  if (url === null || url.hostname === '' || rest !== '') {
    throw new InvalidValue(name, text, 'is no server of syslog', 'write it like syslog://logs.example.net:514');
  }
  const { protocol, hostname, port } = url as URL & { protocol: keyof typeof ports };
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? ports[protocol] : Number(port),
    isTls: protocol === 'syslogs:',
  };
}
