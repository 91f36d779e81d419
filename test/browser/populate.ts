import { randomBytes } from 'node:crypto';
import type { PeerPath, RoutePath } from '../../src/contract/health.ts';
import type { PeerType } from '../../src/contract/peer.ts';
import { labelOf } from '../../src/control-plane/domain/peer-label.ts';
import { hashToken, mintToken, tokenPrefixes } from '../../src/control-plane/domain/tokens.ts';
import { formatTraffic } from '../../src/control-plane/health/traffic-history.ts';
import type { Db } from '../../src/control-plane/store/tables.ts';

export const officeRoute = '192.168.50.0/24';
const deadRoute = '192.168.60.0/24';

const people = ['anna', 'ben', 'Zoë', '北京-web', 'maria-jose', 'oleksandr', 'yuki', 'fatima', 'li', 'søren'];
const servers = ['web', 'db', 'cache', 'queue', 'build', 'mail', 'backup', 'metrics'];
const minute = 60_000;

/** What a peer of {@link populate} is. */
interface Filled {
  readonly id: number;
  readonly name: string;
  readonly type: PeerType;
  readonly state: 'online' | 'offline' | 'unknown';
}

/**
 * Fills a network as it is after some weeks: two connectors, a standby that never answered where there are more than three peers, servers
 * and laptops, one in nine of them offline. Hosts report paths and traffic, and there are events.
 */
export async function populate(db: Db, network: number, count: number): Promise<readonly Filled[]> {
  const now = Date.now();
  const at = (minutes: number) => new Date(now - minutes * minute).toISOString();
  return db.transaction().execute(async (transaction) => {
    const filled: Filled[] = [];
    const { private_cidr } = await transaction
      .selectFrom('networks')
      .select('private_cidr')
      .where('id', '=', network)
      .executeTakeFirstOrThrow();
    const [a, b] = private_cidr.split('.');
    for (let number = 0; number < count; number++) {
      const type = typeOf(number, count);
      const name = nameOf(type, number);
      const { id } = await transaction
        .insertInto('peers')
        .values({
          ...{ network_id: network, name, label: labelOf(name), peer_type: type },
          public_key: randomBytes(32).toString('base64'),
          address: `${a}.${b}.${Math.floor(number / 250)}.${1 + (number % 250)}`,
          endpoint: type === 'admin_device' ? null : `${name}.sites.example.net:51820`,
          ...(type === 'connector' && { serving_since: at(60 * 24 * 30 - number) }),
          // The second connector serves one of the routes alone.
          routes: number === 1 ? JSON.stringify([officeRoute]) : null,
          token_hash: hashToken(mintToken(tokenPrefixes.peer, randomBytes)),
          created_at: at(60 * 24 * 30 - number),
        })
        .returning('id')
        .executeTakeFirstOrThrow();
      const isSilent = type === 'connector' && number === 2;
      const state = isSilent ? 'unknown' : number > 3 && number % 9 === 4 ? 'offline' : 'online';
      filled.push({ id, name, type, state });
    }
    const connectors = filled.filter(({ type }) => type === 'connector').map(({ id }) => id);
    for (const [number, { id, state, type }] of filled.entries()) {
      if (state === 'unknown') continue;
      const others = Array.from({ length: Math.min(8, count - 1) }, (_, step) => filled[(number + 1 + step) % count]);
      const seen = new Set([...connectors, ...others.flatMap((each) => each?.id ?? [])]);
      seen.delete(id);
      const paths = [...seen].map((peer, step): PeerPath => {
        const other = filled.find((each) => each.id === peer);
        if (other?.state === 'offline') return { peer, path: 'down' };
        if (other?.state === 'unknown') return { peer, path: 'never' };
        if (step % 5 === 4 && connectors[0] !== undefined) return { peer, path: 'relayed', via: connectors[0] };
        const rates = { rx_rate: (number * 7919 * (step + 1)) % 90_000, tx_rate: (number * 104_729) % 20_000 };
        return { peer, path: 'direct', handshake_age: 20 + step, rtt_ms: 2 + step * 3, ...rates };
      });
      const lan = type === 'connector' ? { lan: 'up' as const } : {};
      const routes: RoutePath[] = [{ route: officeRoute, connector: connectors[0] ?? null, ...lan }];
      const seenAt = state === 'online' ? at(0) : at(47 + number);
      await transaction
        .insertInto('peer_health')
        .values({
          ...{ peer_id: id, network_id: network, last_seen: seenAt, reported_at: seenAt },
          ...{
            version: number % 4 === 3 ? '0.0.9' : '0.1.0',
            platform: 'linux x64',
            address: `203.0.113.${number % 250}`,
          },
          announced: state,
          report: JSON.stringify({ paths, routes, drift: 0, pin_mismatches: [], problem: null }),
        })
        .execute();
    }
    for (const [number, { id, state }] of filled.entries()) {
      if (state === 'unknown') continue;
      const rates = Array.from(
        { length: 48 },
        (_, step) => Math.max(0, 1 + Math.sin(step / 5 + number)) * 4e7 * (1 + (number % 7)),
      );
      // The last interval is not over.
      rates.push((rates.pop() ?? 0) * ((now % 1_800_000) / 1_800_000));
      const sent = rates.map((rate) => Math.round(rate / 4));
      const history = { last: Math.floor(now / 1_800_000), received: rates.map(Math.round), sent };
      await transaction
        .insertInto('peer_traffic')
        .values({ peer_id: id, history: formatTraffic(history), updated_at: at(0) })
        .execute();
    }
    if (count > 3) {
      const [first, second] = filled;
      const events = [
        ['peer.online', filled[3], null, 300, {}],
        ['route.failed_over', null, officeRoute, 180, { from: first, to: second, why: 'edge-1 does not answer' }],
        ['route.failed_over', null, officeRoute, 150, { from: second, to: first, why: 'edge-1 answers again' }],
        ['peer.offline', filled[4], null, 47, { why: 'not seen for 91 s; 0 of 3 hosts reach it' }],
        ['route.dead', null, deadRoute, 30, { from: first, why: 'each of its connectors is offline' }],
      ] as const;
      for (const [type, peer, route, minutes, details] of events) {
        await transaction
          .insertInto('events')
          .values({
            ...{ network_id: network, at: at(minutes), type, route, details: JSON.stringify(details) },
            ...{ peer_id: peer?.id ?? null, peer_name: peer?.name ?? null },
          })
          .execute();
      }
    }
    await transaction.updateTable('networks').set({ addresses_given: count }).where('id', '=', network).execute();
    return filled;
  });
}

function typeOf(number: number, count: number): PeerType {
  if (number < 2 || (number === 2 && count > 3)) return 'connector';
  return number % 3 === 0 ? 'origin' : 'admin_device';
}

function nameOf(type: PeerType, number: number): string {
  if (type === 'connector') return `edge-${number + 1}`;
  const names = type === 'origin' ? servers : people;
  const round = Math.floor(number / names.length);
  return `${names[number % names.length]}${round === 0 ? '' : `-${round}`}`;
}
