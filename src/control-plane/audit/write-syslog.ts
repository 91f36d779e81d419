import { connect, isIP, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { connect as connectTls } from 'node:tls';
import { codeOf } from '../../core/tls/failure-code.ts';
import type { AuditMessage, AuditReceiver, Sent } from './send-audit.ts';

export interface SyslogServer {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

const attemptMs = 20_000;
/** A balancer without a server behind it closes a new connection within this time. */
const settleMs = 250;
/** Facility 13, log audit, and severity 5, notice (RFC 5424, 6.2.1). */
const priority = 13 * 8 + 5;

/**
 * Sends messages of RFC 5424 over TCP or TLS, each after its length (RFC 6587, 3.4.1; RFC 5425).
 * Syslog has no replies: a connection carries one batch, and the server closes it after our end,
 * never before.
 */
export function createSyslogReceiver({ host, port, isTls }: SyslogServer): AuditReceiver {
  const name = `${isTls ? 'syslogs' : 'syslog'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  return {
    ...{ name, label: name, accepts: () => true },
    send: (messages, signal) =>
      new Promise<Sent>((resolve) => {
        const limit = AbortSignal.any([signal, AbortSignal.timeout(attemptMs)]);
        const fail = (reason: string) => end({ count: 0, failure: { reason, retryAfterMs: 0, isRefusal: false } });
        // An address is no server name (RFC 6066, 3).
        const named = isIP(host) === 0 ? { servername: host } : {};
        const socket: Socket = isTls ? connectTls({ host, port, ...named }) : connect({ host, port });
        const end = (sent: Sent) => {
          limit.removeEventListener('abort', onAbort);
          socket.destroy();
          resolve(sent);
        };
        const onAbort = () =>
          fail(signal.aborted ? 'the control plane stops' : `no end in ${attemptMs / 1000} seconds`);
        limit.addEventListener('abort', onAbort, { once: true });
        let isEnded = false;
        socket.on('error', (error) => fail(codeOf(error)));
        socket.on('end', () => isEnded || fail('the server closed the connection early'));
        socket.on('close', () =>
          isEnded ? end({ count: messages.length, failure: null }) : fail('the server closed the connection early'),
        );
        socket.on(isTls ? 'secureConnect' : 'connect', () => {
          socket.write(messages.map(toFrame).join(''), () => {
            setTimeout(() => {
              isEnded = true;
              socket.end();
            }, settleMs);
          });
        });
        // Without a reader, the end of the other side is never noticed.
        socket.resume();
      }),
  };
}

function toFrame({ body, entry }: AuditMessage): string {
  const message = `<${priority}>1 ${entry.at} ${hostname() || '-'} cpn-control-plane ${process.pid} audit - ${body}`;
  return `${Buffer.byteLength(message)} ${message}`;
}
