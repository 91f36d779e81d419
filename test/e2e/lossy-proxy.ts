/**
 * A proxy in front of a control plane that loses replies: `node lossy-proxy.ts LISTEN-PORT TARGET-HOST TARGET-PORT COUNT`. It passes every
 * request on, and breaks the connection instead of passing back the first COUNT replies to what is posted.
 *
 * @module
 */
import { connect, createServer } from 'node:net';

const [port, host, target, count] = process.argv.slice(2);
let toLose = Number(count);

createServer((client) => {
  const server = connect(Number(target), host);
  let isPosted = false;
  client.once('data', (request) => {
    isPosted = request.toString('latin1').startsWith('POST ');
  });
  client.pipe(server);
  server.on('data', (reply) => {
    if (toLose === 0 || !isPosted) return void client.write(reply);
    toLose -= 1;
    process.stdout.write('lost a reply\n');
    client.destroy();
    server.destroy();
  });
  server.on('end', () => client.end());
  for (const socket of [client, server]) socket.on('error', () => {});
}).listen(Number(port), () => process.stdout.write('listening\n'));
