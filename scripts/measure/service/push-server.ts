/**
 * The control plane under load, a process of its own. Its parent sends it over IPC what to hold and
 * to serve, and requests how many long polls wait and how much processor time it has used.
 */
import { pino } from 'pino';
import { findConsole } from '../../../src/control-plane/http/console.ts';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';
import { type ServeOptions, serve } from '../../../src/control-plane/serve.ts';
import { openPostgres } from '../../../src/control-plane/store/postgres/store.ts';
import { openStore } from '../../../src/control-plane/store/sqlite/store.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { fillTags } from '../rules/tags.ts';
import { counted, countStatements } from './counted-statements.ts';
import { fillNetworks, fillReports } from './fill-networks.ts';
import type { Member, ServerAnswer, ServerOrder } from './push-messages.ts';

countStatements();
let notifier = new ChangeNotifier();
const owner = { email: 'owner@example.net', password: 'correct horse battery staple' };

const answers: { [Kind in ServerOrder['kind']]: (order: ServerOrder & { kind: Kind }) => Promise<ServerAnswer> } = {
  serve: async (order) => {
    const { folder, database, networks, isReporting = false } = order;
    const options = optionsFor(folder, database);
    // The first start makes the owner and its organization.
    const members = networks === 0 ? [] : await fillAfter(options, order);
    notifier = new ChangeNotifier();
    const { url } = await serve({ ...options, notifier, console: isReporting ? findConsole() : null });
    return { kind: 'serving', url, owner, members };
  },
  look: async () => {
    const { user, system } = process.cpuUsage();
    const rssMiB = process.memoryUsage.rss() / 2 ** 20;
    const mostRssMiB = process.resourceUsage().maxRSS / 2 ** 10;
    const used = { waiting: notifier.count(), cpuMs: (user + system) / 1000, rssMiB, mostRssMiB };
    return { kind: 'looked', ...used, ...counted };
  },
  end: async () => process.exit(0),
};

process.on('message', async (order: ServerOrder) => {
  const answer = answers[order.kind] as (order: ServerOrder) => Promise<ServerAnswer>;
  process.send?.(await answer(order));
});
process.on('disconnect', () => process.exit(0));

async function fillAfter(
  options: ServeOptions,
  { networks, peers, isReporting, isTagged }: ServerOrder & { kind: 'serve' },
): Promise<Member[]> {
  await (await serve(options)).close();
  const store = await openStoreOf(options);
  try {
    const members = await fillNetworks(store.db, networks, peers);
    if (isReporting) await fillReports(store.db, members);
    if (isTagged) await fillTags(store.db, members);
    return members;
  } finally {
    await store.close();
  }
}

async function openStoreOf({ dataDir, database }: ServeOptions) {
  const nothing = () => {};
  if (!database) return openStore(dataDir);
  const events = { notify: nothing, isAwaited: () => false, notifyAll: nothing, lost: nothing, openToOthers: nothing };
  return openPostgres(database, events);
}

function optionsFor(folder: string, database: string | null): ServeOptions {
  return {
    host: '127.0.0.1',
    port: 0,
    dataDir: folder,
    database: database === null ? null : new Secret(database),
    owner: { email: owner.email, password: new Secret(owner.password) },
    allowPublicRoutes: false,
    // All come from one address here, and enrol with the keys of one user.
    limits: { requests: Number.MAX_SAFE_INTEGER, userChanges: Number.MAX_SAFE_INTEGER },
    logger: pino({ level: 'silent' }),
    notifier,
  };
}
