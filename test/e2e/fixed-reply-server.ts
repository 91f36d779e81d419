/**
 * An HTTP server that gives one reply to every request: `node fixed-reply-server.ts PORT STATUS CONTENT-TYPE BODY`.
 *
 * @module
 */
import { createServer } from 'node:http';

const [port, status, type, body] = process.argv.slice(2);

createServer((request, response) => {
  request.resume();
  response.writeHead(Number(status), { 'content-type': type ?? '' }).end(body);
}).listen(Number(port), () => process.stdout.write('listening\n'));
