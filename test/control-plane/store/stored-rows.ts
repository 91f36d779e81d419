import { randomBytes } from 'node:crypto';
import { insertOrganization, insertUser } from '../../../src/control-plane/store/accounts/users.ts';
import { type StoredHealth, savePeerHealth } from '../../../src/control-plane/store/health.ts';
import { insertNetwork } from '../../../src/control-plane/store/networks.ts';
import { insertPeer, type NewPeer } from '../../../src/control-plane/store/peers/peers.ts';
import type { Db } from '../../../src/control-plane/store/tables.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { copyTables, withDatabase } from '../databases.ts';
import { makeFolder } from '../harness.ts';

/** The instant at which rows are read, in milliseconds. */
export const now = Date.parse('2030-01-01T00:00:00.000Z');
export const day = 24 * 3600 * 1000;
/** An instant this many milliseconds ago; later than now for a negative number. */
export const ago = (ms: number) => new Date(now - ms).toISOString();
export const readTime = async () => new Date(now);

export interface Rows {
  readonly db: Db;
  readonly organization: number;
  readonly network: number;
  readonly addUser: () => Promise<number>;
  readonly addNetwork: (organization?: number) => Promise<number>;
  readonly addOrganization: () => Promise<number>;
  /** Adds a peer with its health to the network, or another one. */
  readonly addPeer: (fields?: Partial<NewPeer>, health?: Partial<StoredHealth>) => Promise<number>;
}

/** The tables of a control plane that does not serve, with an organization and a network. */
export async function withRows(work: (rows: Rows) => Promise<void>): Promise<void> {
  const folder = makeFolder();
  await copyTables(folder);
  await withDatabase(folder, async (db) => {
    const random = () => randomBytes(6).toString('hex');
    let count = 0;
    const addOrganization = () => insertOrganization(db, random());
    const organization = await addOrganization();
    const addNetwork = async (of = organization) => {
      const fields = { name: 'office', description: '', range: parsePrefix('10.77.0.0/24'), routes: [] };
      return (await insertNetwork(db, of, fields, ago(day), random())).id;
    };
    const network = await addNetwork();
    const addUser = () =>
      insertUser(db, {
        ...{ organization_id: organization, email: `${random()}@example.net`, password_hash: 'none', role: 'owner' },
        created_at: ago(day),
      });
    const addPeer: Rows['addPeer'] = async (fields = {}, health = {}) => {
      count += 1;
      const peer = await insertPeer(db, {
        ...{ network_id: network, name: `host-${count}`, label: `host-${count}`, peer_type: 'origin' },
        ...{ public_key: randomBytes(32).toString('base64'), previous_key: null, address: `10.77.0.${count}` },
        ...{ token_hash: randomBytes(32).toString('base64url'), created_at: ago(day), ...fields },
      });
      if (peer === undefined) throw new Error('no peer was added');
      if (Object.keys(health).length > 0) await savePeerHealth(db, peer.id, health);
      return peer.id;
    };
    await work({ db, organization, network, addUser, addNetwork, addOrganization, addPeer });
  });
}
