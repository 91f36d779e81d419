/**
 * A proxy in front of a control plane that counts bytes: `node counting-proxy.ts LISTEN-PORT TARGET-HOST TARGET-PORT`. It prints a line
 * for each report of a host when its connection ends or has another request: when it came in milliseconds, the bytes of its request and of
 * the reply, and the body of the request.
 *
 * @module
 */
import { connect, createServer } from 'node:net';

const [port, host, target] = process.argv.slice(2);

createServer((client) => {
  const server = connect(Number(target), host);
  let report: { at: number; sent: number; received: number; text: string } | null = null;
  const end = () => {
    if (report !== null) {
      const { at, sent, received, text } = report;
      process.stdout.write(`report ${at} ${sent} ${received} ${text.slice(text.indexOf('\r\n\r\n') + 4)}\n`);
    }
    report = null;
  };
  client.on('data', (request) => {
    const text = request.toString('latin1');
    if (/^[A-Z]+ \S+ HTTP/.test(text)) end();
    if (/^POST \S+\/report HTTP/.test(text)) report = { at: Date.now(), sent: 0, received: 0, text: '' };
    if (report === null) return;
    report.sent += request.length;
    report.text += text;
  });
  server.on('data', (reply) => {
    if (report !== null) report.received += reply.length;
  });
  client.pipe(server).pipe(client);
  for (const socket of [client, server]) {
    socket.on('error', () => {});
    socket.on('close', end);
  }
}).listen(Number(port), () => process.stdout.write('listening\n'));
