import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';

/** Called with the status of each refusal of a malformed request, for which Fastify runs no hook. */
type OnRefusal = (status: number) => void;

/** Answers, on the bare connection, what came too slowly, with too large headers, or is no HTTP; then drops the connection. */
export function createClientErrorHandler(onRefusal: OnRefusal): (error: NodeJS.ErrnoException, socket: Socket) => void {
  return (error, socket) => {
    // The client has disconnected.
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    const { status, message } = refusals[error.code ?? ''] ?? notHttp;
    onRefusal(status);
    if (socket.writable) socket.write(formatReply(status, message));
    socket.destroy(error);
  };
}

const refusals: Readonly<Record<string, { status: number; message: string }>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'the request took too long to arrive' },
  HPE_HEADER_OVERFLOW: { status: 431, message: 'the headers of the request are larger than 16 KiB' },
};
const notHttp = { status: 400, message: 'this is no HTTP request' };

function formatReply(status: number, message: string): string {
  const body = JSON.stringify({ message });
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
}
