import { connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { linuxHost } from '../../../src/host/linux/linux-host.ts';
import { parseConnections } from '../../../src/host/linux/socket-table.ts';

test('an established connection goes from its client to the port that a host listens on', () => {
  const tables = [
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
    '   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1',
    '   1: 02004D0A:0016 03004D0A:C001 01 00000000:00000000 00:00000000 00000000     0        0 2 1',
    '   2: 02004D0A:C002 03004D0A:1538 01 00000000:00000000 00:00000000 00000000     0        0 3 1',
    '   3: 02004D0A:C003 03004D0A:1538 06 00000000:00000000 00:00000000 00000000     0        0 0 1',
    '   4: 0000000000000000FFFF000002004D0A:C004 0000000000000000FFFF000003004D0A:0050 01 00000000:00000000 00:00000000',
  ];
  expect(parseConnections(tables.join('\n'), 'LE')).toEqual([
    { from: '10.77.0.3', to: '10.77.0.2', port: 22 },
    { from: '10.77.0.2', to: '10.77.0.3', port: 5432 },
    { from: '10.77.0.2', to: '10.77.0.3', port: 80 },
  ]);
});

test('a real connection is found, once for each of its ends on this host', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const client = connect(port, '127.0.0.1');
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  await Promise.all([
    new Promise((resolve) => client.once('connect', resolve)),
    new Promise((resolve) => server.once('connection', resolve)),
  ]);
  const found = linuxHost()
    .tcpConnections()
    .filter((each) => each.port === port);
  expect(found).toEqual([
    { from: '127.0.0.1', to: '127.0.0.1', port },
    { from: '127.0.0.1', to: '127.0.0.1', port },
  ]);
});
