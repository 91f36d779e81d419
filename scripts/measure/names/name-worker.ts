/** Serves the names of many peers on loopback, as the daemon does, until its parent ends. */
import { answer, buildZones, indexZones } from '../../../src/core/names/zone.ts';
import { parseAddress } from '../../../src/core/net/cidr.ts';
import { serveNames } from '../../../src/host/name-server/serve-names.ts';
import { namedPeers, range } from './named-peers.ts';

const zones = indexZones(buildZones({ label: 'office', range, hosts: namedPeers() }));
const { port } = await serveNames({
  address: parseAddress('127.0.0.1'),
  port: 0,
  isAllowed: () => true,
  answer: (question) => answer(zones, question),
});
process.on('disconnect', () => process.exit());
process.send?.(port);
