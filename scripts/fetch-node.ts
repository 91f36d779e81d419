/**
 * Fetches the private Node of each architecture that is not here yet, for packages: node
 * scripts/fetch-node.ts
 */
import { architectures } from '../packaging/architecture.ts';
import { fetchNode } from '../packaging/fetch-node.ts';
import { fetchedFolder, locateNode, readNodePackage } from '../packaging/private-node.ts';

for (const architecture of architectures) {
  const wanted = readNodePackage(architecture);
  if (locateNode(wanted) !== undefined) continue;
  process.stdout.write(`fetching ${wanted.name}@${wanted.version}\n`);
  await fetchNode(wanted, fetchedFolder(wanted));
}
