/**
 * The control plane under load, a process of its own. Its parent sends it over IPC what to hold and to serve, and requests how
 * many long polls wait and how much processor time it has used.
 */
import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { hashToken, mintToken, tokenPrefixes } from '../../../src/control-plane/domain/tokens.ts';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';
import { type ServeOptions, serve } from '../../../src/control-plane/serve.ts';
import { makeNonce } from '../../../src/control-plane/store/changes.ts';
import { insertNetwork } from '../../../src/control-plane/store/networks.ts';
import { insertPeer } from '../../../src/control-plane/store/peers.ts';
import { openStore } from '../../../src/control-plane/store/sqlite/store.ts';
import type { Db } from '../../../src/control-plane/store/tables.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { addressAt, parsePrefix, rangeOf } from '../../../src/core/net/cidr.ts';
import { counted, countStatements } from './counted-statements.ts';
import type { Member, ServerAnswer, ServerOrder } from './push-messages.ts';

countStatements();
let notifier = new ChangeNotifier();
const range = parsePrefix('10.64.0.0/12');
const owner = { email: 'owner@example.net', password: 'correct horse battery staple' };

const answers: { [Kind in ServerOrder['kind']]: (order: ServerOrder & { kind: Kind }) => Promise<ServerAnswer> } = {
  serve: async ({ folder, database, networks, peers }) => {
    const options = optionsFor(folder, database);
    // The first start makes the owner and its organization.
    const members = networks === 0 ? [] : await fillAfter(options, networks, peers);
    notifier = new ChangeNotifier();
    const { url } = await serve({ ...options, notifier });
    return { kind: 'serving', url, owner, members };
  },
  look: async () => {
    const { user, system } = process.cpuUsage();
    const rssMiB = process.memoryUsage.rss() / 2 ** 20;
    return { kind: 'looked', waiting: notifier.count(), cpuMs: (user + system) / 1000, rssMiB, ...counted };
  },
  end: async () => process.exit(0),
};

process.on('message', async (order: ServerOrder) => {
  const answer = answers[order.kind] as (order: ServerOrder) => Promise<ServerAnswer>;
  process.send?.(await answer(order));
});
process.on('disconnect', () => process.exit(0));

async function fillAfter(options: ServeOptions, networks: number, peers: number): Promise<Member[]> {
  await (await serve(options)).close();
  const store = await openStore(options.dataDir);
  try {
    return await fill(store.db, networks, peers);
  } finally {
    await store.close();
  }
}

function optionsFor(folder: string, database: string | null): ServeOptions {
  return {
    host: '127.0.0.1',
    port: 0,
    dataDir: folder,
    database: database === null ? null : new Secret(database),
    owner: { email: owner.email, password: new Secret(owner.password) },
    allowPublicRoutes: false,
    // All come from one address here.
    limits: { requests: Number.MAX_SAFE_INTEGER },
    logger: pino({ level: 'silent' }),
    notifier,
  };
}

/** Makes networks full of peers with tokens of their own: past the API, which lets ten hosts in by one key. */
async function fill(db: Db, networks: number, peers: number): Promise<Member[]> {
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
