import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A bare connection, for what no HTTP client would send. */
export interface RawConnection {
  readonly socket: Socket;
  send(text: string): void;
  /** All that was received, once it holds `text`. */
  until(text: string): Promise<string>;
  /** All that was received, once the other side has ended the connection. */
  ended(): Promise<string>;
}

/** Connects to the server of a URL; from another address of this machine where `from` names it. */
export async function connectRaw(url: string, from?: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ...(from !== undefined && { localAddress: from }) });
  let received = '';
  socket.setEncoding('utf8').on('data', (text) => {
    received += text;
  });
  // What matters is what came before a reset.
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await once(socket, 'connect');
  return {
    socket,
    send: (text) => {
      socket.write(text);
    },
    async until(text) {
      while (!received.includes(text)) {
        if (socket.destroyed) throw new Error(`closed before ${JSON.stringify(text)}: ${JSON.stringify(received)}`);
        await Promise.race([once(socket, 'data'), closed]);
      }
      return received;
    },
    async ended() {
      await closed;
      return received;
    },
  };
}

/** The status and the message of an error, as it came over the wire. */
export function refusalIn(received: string): { status: number; message: unknown } {
  const [head = '', body = ''] = received.split('\r\n\r\n');
  return { status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]), message: JSON.parse(body).message };
}
