/**
 * Runs inside the control plane's host: `node receiver.ts PORT` takes what a webhook sends, and
 * writes a line for each event: when it came, in milliseconds since the epoch, and the event.
 *
 * @module
 */
import { createServer } from 'node:http';

createServer((request, response) => {
  const at = Date.now();
  let body = '';
  request.setEncoding('utf8').on('data', (text) => {
    body += text;
  });
  request.on('end', () => {
    process.stdout.write(`received ${at} ${body}\n`);
    response.end();
  });
}).listen(Number(process.argv[2]), '127.0.0.1', () => process.stdout.write('listening\n'));
