import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { TlsFiles } from '../../../src/control-plane/http/tls-files.ts';
import { createTransport, defaultDeadlines } from '../../../src/control-plane/http/transport.ts';
import { makeCertificate } from '../../api/certificate.ts';
import { makeFolder } from '../harness.ts';

/** What the kernel has for the third descriptor of this Python, which Node cannot read. */
const readOptions = `
from socket import *
s = socket(fileno=3)
tcp = [TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT]
print(s.getsockopt(SOL_SOCKET, SO_KEEPALIVE), *[s.getsockopt(IPPROTO_TCP, o) for o in tcp])
`;

function writeTls(): TlsFiles {
  const { cert, key } = makeCertificate();
  const folder = makeFolder();
  const files = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  writeFileSync(files.certificate, cert);
  writeFileSync(files.key, key, { mode: 0o600 });
  return files;
}

const ways: readonly (readonly [scheme: string, makeTls: () => TlsFiles | null])[] = [
  ['http', () => null],
  ['https', writeTls],
];

test.each(ways)('over %s, TCP closes a connection nine seconds after the last packet', async (_, makeTls) => {
  const server = createTransport(makeTls(), defaultDeadlines).serverFactory(() => {});
  const accepted = once(server.listen(0, '127.0.0.1'), 'connection');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [socket]: [Socket & { readonly _handle?: { readonly fd: number } }] = (await accepted) as never;
  onTestFinished(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
  const stdio = ['ignore', 'pipe', 'inherit', socket._handle?.fd ?? 'ignore'] as const;
  const options = execFileSync('python3', ['-c', readOptions], { stdio: [...stdio], encoding: 'utf8' });
  const [isOn, afterSeconds, everySeconds, probes] = options.trim().split(' ').map(Number);
  expect({ isOn, afterSeconds, everySeconds, probes }).toEqual({
    isOn: 1,
    afterSeconds: 4,
    everySeconds: 1,
    probes: 5,
  });
});
