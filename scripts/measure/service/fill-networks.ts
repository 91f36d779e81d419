import { randomBytes } from 'node:crypto';
import type { PeerPath } from '../../../src/contract/health.ts';
import { hashToken, mintToken, tokenPrefixes } from '../../../src/control-plane/domain/tokens.ts';
import { makeNonce } from '../../../src/control-plane/store/changes.ts';
import { insertNetwork } from '../../../src/control-plane/store/networks.ts';
import { insertPeer } from '../../../src/control-plane/store/peers/peers.ts';
import type { Db } from '../../../src/control-plane/store/tables.ts';
import { addressAt, parsePrefix, rangeOf } from '../../../src/core/net/cidr.ts';
import type { Member } from './push-messages.ts';

const range = parsePrefix('10.64.0.0/12');

/**
 * Makes networks full of peers with tokens of their own: past the API, which lets ten hosts in by
 * one key.
 */
export async function fillNetworks(db: Db, networks: number, peers: number): Promise<Member[]> {
  return db.transaction().execute(async (transaction) => {
    const now = new Date().toISOString();
    const { id: organization } = await transaction.selectFrom('organizations').select('id').executeTakeFirstOrThrow();
    const members: Member[] = [];
    for (let count = 0; count < networks; count++) {
      const fields = { name: `network-${count}`, description: '', range, routes: [] };
      const network = await insertNetwork(transaction, organization, fields, now, makeNonce(randomBytes));
      for (let number = 1; number <= peers; number++) {
        const token = mintToken(tokenPrefixes.peer, randomBytes);
        const peer = await insertPeer(transaction, {
          network_id: network.id,
          name: `edge-${number}`,
          label: `edge-${number}`,
          peer_type: 'origin',
          public_key: randomBytes(32).toString('base64'),
          address: addressAt(rangeOf(range).first + BigInt(number)),
          endpoint: `203.0.113.${number % 250}:51820`,
          token_hash: hashToken(token),
          created_at: now,
        });
        members.push({ network: network.id, peer: peer?.id ?? 0, token: token.reveal() });
      }
      const given = { addresses_given: peers };
      await transaction.updateTable('networks').set(given).where('id', '=', network.id).execute();
    }
    return members;
  });
}

/** Peers that are connectors, of each network. */
const mostConnectors = 20;
/** Other hosts that a host talks with. */
const mostOthers = 10;
const states = ['direct', 'direct', 'direct', 'down', 'stale', 'never'] as const;

/**
 * Gives the peers of a network the reports of hosts that talk with its connectors and with some
 * other hosts. One in fifty is a connector, up to twenty.
 */
export async function fillReports(db: Db, members: readonly Member[]): Promise<void> {
  const ids = members.map(({ peer }) => peer);
  const connectors = ids.slice(0, Math.max(1, Math.min(mostConnectors, Math.floor(ids.length / 50))));
  const now = new Date().toISOString();
  await db.transaction().execute(async (transaction) => {
    await transaction.updateTable('peers').set({ peer_type: 'connector' }).where('id', 'in', connectors).execute();
    for (const [at, { network, peer }] of members.entries()) {
      const others = Array.from({ length: mostOthers }, (_, step) => ids[(at + 1 + step) % ids.length] ?? 0);
      const known = [...new Set([...connectors, ...others])].filter((id) => id !== peer);
      const paths = known.map((id, step): PeerPath => {
        const path = states[(at + step) % states.length] ?? 'direct';
        const measured = { handshake_age: 30 + step, rtt_ms: 1.5, rx_rate: 1000 * step, tx_rate: 20 };
        return { peer: id, path, ...(path === 'direct' && measured) };
      });
      await transaction
        .insertInto('peer_health')
        .values({
          ...{ peer_id: peer, network_id: network, last_seen: now, reported_at: now },
          ...{ version: '0.1.0', platform: 'linux x64', address: '203.0.113.1', announced: 'online' },
          report: JSON.stringify({ paths, routes: [], drift: 0, pin_mismatches: [], problem: null }),
        })
        .execute();
    }
  });
}
