/**
 * A control plane that sends made-up messages: `node hostile-messages-program.ts LISTEN-ADDRESS PORT TARGET-PORT`. It passes every
 * request on to the true one at the same address, except that it answers requests for the map with the messages of its orders.
 *
 * @module
 */
import { createServer, request } from 'node:http';
import { followOrders } from '../lab/orders.ts';

const [host, port, target] = process.argv.slice(2);
/** Messages that wait for a request, one for each reply. */
const messages: unknown[] = [];
let release = () => {};

createServer(async (asked, reply) => {
  if (asked.headers['peer-messages'] !== undefined && messages.length > 0) return void answer(asked.headers, reply);
  const { method, headers, url: path } = asked;
  const passed = request({ host, port: Number(target), method, headers, path }, (answered) => {
    reply.writeHead(answered.statusCode ?? 502, answered.headers);
    answered.pipe(reply);
  });
  if (headers['peer-messages'] !== undefined) {
    // A made-up message ends the wait, as a true one does.
    const end = () => {
      if (reply.headersSent) return;
      passed.destroy();
      answer(headers, reply);
    };
    release = end;
  }
  passed.on('error', () => reply.destroy());
  asked.pipe(passed);
}).listen(Number(port), host, () => process.stdout.write('listening\n'));

function answer(headers: NodeJS.Dict<string | string[]>, reply: import('node:http').ServerResponse): void {
  const base = headers['if-none-match'];
  const body = { data: { base, peers: [], removed: [], messages: messages.splice(0, 8) } };
  reply.writeHead(226, {
    'content-type': 'application/json',
    im: 'cpn-delta',
    'delta-base': `${base}`,
    etag: `${base}`,
  });
  reply.end(JSON.stringify(body));
}

await followOrders((order: readonly unknown[]) => {
  messages.push(...order);
  release();
});
