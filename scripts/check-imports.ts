/**
 * Checks that imports run in one direction only, by the table below, with a row for each room:
 * main → cli → app → adapters → core, and the control plane next to them. Cycles fail, those of
 * types too, and so do too many files in a folder and too many short ones. Prints what is wrong,
 * and then exits with 1.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { styleText } from 'node:util';

/**
 * What the files of one room may import, in addition to each other. A folder with all below it ends
 * in `/`, one without its subfolders in `/*`; everything else is a file or a package. `node:` is
 * all of Node but for {@link NAMED_ONLY}.
 */
interface Rule {
  /** The longest one that fits a file counts. */
  readonly files: string;
  readonly may: readonly string[];
  /** May be imported as types, with `import type`. */
  readonly types?: readonly string[];
  /** May be imported when it is needed, with `import()`. */
  readonly lazily?: readonly string[];
}

/** Parts of Node that `node:` doesn't stand for. */
const NAMED_ONLY = ['node:child_process', 'node:cluster', 'node:sqlite', 'node:worker_threads'];

/** What several rooms may import. */
const CORE = ['src/core/'];
const BASICS = ['src/core/errors/', 'src/core/crypto/', 'src/core/util/'];
const APP = [...CORE, 'src/app/*', 'node:net', 'node:crypto'];
/**
 * What the use cases are made of: a pass, what a connector serves, and what is wrong with a
 * network.
 */
const APP_ROOMS = [...APP, 'src/app/reconcile/', 'src/app/lan/', 'src/app/problems/'];
const APP_TYPES = [
  'src/contract/',
  'src/api/service.ts',
  'src/api/admin-service.ts',
  'src/host/host.ts',
  'src/host/supervisor.ts',
  'src/store/',
];
const ADAPTERS = ['src/api/', 'src/store/', 'src/host/'];
const CLI = [...CORE, 'src/app/', 'src/cli/*', 'src/cli/input/', 'src/cli/output/', 'node:'];
const CLI_TYPES = ['src/contract/', ...ADAPTERS];
const HOST = [...CORE, 'src/host/*', 'src/host/process/', 'node:'];
const CONTROL_PLANE = ['src/contract/', ...CORE, 'src/control-plane/*', 'node:'];
const STORE = [...CONTROL_PLANE, 'src/control-plane/domain/', 'kysely'];
/** The SQL, without what a database has of its own. */
const STORE_ROOMS = [
  'src/control-plane/store/*',
  'src/control-plane/store/accounts/',
  'src/control-plane/store/peers/',
];

const TABLE: readonly Rule[] = [
  { files: 'src/main.ts', may: ['src/cli/', 'node:fs'] },

  // These construct the adapters. The login's file is the administrator's own, and only one command
  // imports the control plane.
  { files: 'src/cli/context.ts', may: [...CLI, 'src/cli/daemon/'], types: ADAPTERS, lazily: ADAPTERS },
  { files: 'src/cli/admin.ts', may: CLI, types: ADAPTERS, lazily: ADAPTERS },
  { files: 'src/cli/*', may: [...CLI, 'src/cli/parse/'], types: CLI_TYPES, lazily: ['src/cli/daemon/metrics/'] },
  {
    files: 'src/cli/commands/',
    may: [...[...CLI, 'src/cli/parse/', 'src/cli/api/', 'src/cli/completion/', 'src/cli/daemon/'], 'src/cli/rules/'],
    types: CLI_TYPES,
    lazily: ['src/store/login-file.ts', '@clack/prompts'],
  },
  {
    files: 'src/cli/commands/control-plane.ts',
    may: [...CLI, 'src/cli/parse/', 'src/cli/daemon/'],
    lazily: ['src/control-plane/', 'pino'],
  },
  { files: 'src/cli/parse/', may: [...CLI, 'src/cli/commands/', 'yargs', 'fastest-levenshtein'], types: CLI_TYPES },
  { files: 'src/cli/input/', may: [...CLI, '@clack/prompts'], types: ['src/cli/parse/'] },
  { files: 'src/cli/output/', may: [...CLI, 'src/cli/parse/'], types: CLI_TYPES },
  { files: 'src/cli/output/terminal/', may: [...CORE, 'node:', 'uqr'] },
  { files: 'src/cli/output/log.ts', may: [...CLI, 'pino'] },
  { files: 'src/cli/api/', may: CLI, types: CLI_TYPES },
  // A file of rules is YAML, and the contract has its schema.
  { files: 'src/cli/rules/', may: [...CLI, 'src/contract/', 'yaml'], types: CLI_TYPES },
  { files: 'src/cli/completion/', may: ['src/cli/parse/', 'src/cli/input/'] },
  { files: 'src/cli/daemon/', may: CLI, types: CLI_TYPES, lazily: ['src/cli/daemon/metrics/'] },
  { files: 'src/cli/daemon/metrics/', may: [...CLI, 'prom-client'], types: CLI_TYPES },

  // What the rooms of `app/` share. Use cases import the rooms beneath them, and never each other.
  { files: 'src/app/*', may: APP, types: APP_TYPES },
  { files: 'src/app/reconcile/*', may: [...APP, 'src/app/reconcile/names/'], types: APP_TYPES },
  { files: 'src/app/reconcile/names/', may: APP, types: APP_TYPES },
  { files: 'src/app/lan/', may: [...APP, 'src/app/reconcile/'], types: APP_TYPES },
  { files: 'src/app/problems/', may: [...APP, 'src/app/reconcile/', 'src/app/lan/'], types: APP_TYPES },
  { files: 'src/app/rotation/', may: [...APP, 'src/app/reconcile/', 'src/app/lan/'], types: APP_TYPES },
  { files: 'src/app/networks/', may: [...APP_ROOMS, 'src/app/rotation/'], types: APP_TYPES },
  { files: 'src/app/doctor/', may: APP_ROOMS, types: APP_TYPES },
  { files: 'src/app/drain/', may: [...APP_ROOMS, 'src/app/networks/'], types: APP_TYPES },
  { files: 'src/app/export/', may: [...APP, 'src/app/reconcile/'], types: APP_TYPES },
  { files: 'src/app/inspect/', may: [...APP, 'src/app/reconcile/'], types: APP_TYPES },
  { files: 'src/app/join/', may: [...APP_ROOMS, 'src/app/networks/'], types: APP_TYPES },
  { files: 'src/app/leave/', may: [...APP, 'src/app/reconcile/', 'src/app/networks/'], types: APP_TYPES },
  { files: 'src/app/options/', may: [...APP_ROOMS, 'src/app/networks/'], types: APP_TYPES },
  { files: 'src/app/status/', may: APP_ROOMS, types: APP_TYPES },
  {
    files: 'src/app/run/*',
    may: [
      ...[...APP, 'src/app/reconcile/', 'src/app/networks/'],
      ...['src/app/run/listeners/', 'src/app/run/health/', 'src/app/run/paths/'],
    ],
    types: APP_TYPES,
  },
  {
    files: 'src/app/run/health/',
    may: [...APP, 'src/app/reconcile/', 'src/app/lan/', 'src/app/run/*'],
    types: APP_TYPES,
  },
  {
    files: 'src/app/run/paths/',
    may: [...APP, 'src/app/reconcile/', 'src/app/run/*', 'src/app/run/health/'],
    types: APP_TYPES,
  },
  {
    files: 'src/app/run/listeners/',
    may: [...APP_ROOMS, 'src/app/rotation/', 'src/app/run/*', 'src/app/run/health/'],
    types: APP_TYPES,
  },

  { files: 'src/api/*', may: ['src/contract/', ...CORE, 'src/api/http/', 'src/api/decode/', 'zod', 'node:'] },
  { files: 'src/api/decode/', may: ['src/contract/', ...CORE, 'src/api/*', 'src/api/http/', 'zod', 'node:'] },
  { files: 'src/api/http/', may: [...CORE, 'src/api/*', 'undici', 'node:'] },

  {
    files: 'src/store/*',
    may: [...CORE, 'src/store/state/', 'src/store/files/', 'valibot', 'node:'],
    types: ['src/contract/'],
  },
  { files: 'src/store/lock.ts', may: [...CORE, 'src/store/files/', 'node:', 'node:sqlite'] },
  { files: 'src/store/state/', may: [...CORE, 'src/store/files/', 'valibot', 'node:'], types: ['src/contract/'] },
  { files: 'src/store/files/', may: ['src/core/errors/', 'node:'] },
  { files: 'src/store/files/file-schema.ts', may: [...CORE, 'valibot'] },

  { files: 'src/host/*', may: [...HOST, 'src/host/linux/', 'src/host/wg-quick/', 'src/host/windows/'] },
  { files: 'src/host/process/', may: [...BASICS, 'node:'] },
  { files: 'src/host/process/run.ts', may: [...BASICS, 'execa', 'node:', 'node:child_process'] },
  { files: 'src/host/wireguard/', may: HOST },
  {
    files: 'src/host/linux/*',
    may: [
      ...HOST,
      'src/host/linux/ip/',
      'src/host/linux/nft/',
      'src/host/linux/monitor/',
      'src/host/linux/dns/',
      'src/host/name-server/',
      'src/host/wireguard/',
    ],
  },
  { files: 'src/host/linux/ip/', may: HOST },
  { files: 'src/host/linux/dns/', may: [...HOST, 'src/host/linux/*', 'src/host/linux/ip/'] },
  { files: 'src/host/linux/nft/', may: [...HOST, 'src/host/linux/*', 'src/host/linux/ip/'] },
  { files: 'src/host/linux/monitor/', may: HOST },
  { files: 'src/host/wg-quick/', may: [...HOST, 'src/host/wireguard/', 'src/host/name-server/'] },
  { files: 'src/host/windows/', may: [...HOST, 'src/host/wireguard/', 'src/host/wg-quick/'] },
  { files: 'src/host/systemd/', may: HOST },
  { files: 'src/host/name-server/', may: [...HOST, 'dns-packet'] },

  {
    files: 'src/control-plane/*',
    may: [
      ...[...CONTROL_PLANE, 'src/control-plane/http/', 'src/control-plane/service/', 'src/control-plane/domain/'],
      ...[
        'src/control-plane/push/',
        'src/control-plane/health/',
        'src/control-plane/paths/',
        'src/control-plane/store/',
        'src/control-plane/audit/',
        'src/control-plane/oidc/',
        'fastify',
        'fastify-type-provider-zod',
        'lru-cache',
        'pino',
        'prom-client',
      ],
    ],
  },
  {
    files: 'src/control-plane/http/',
    may: [
      ...[...CONTROL_PLANE, 'src/control-plane/http/', 'src/control-plane/service/', 'src/control-plane/push/'],
      ...[
        'src/control-plane/domain/',
        'src/control-plane/health/',
        'src/control-plane/paths/',
        'fastify',
        'fastify-type-provider-zod',
        '@fastify/rate-limit',
        '@fastify/swagger',
      ],
      ...['prom-client', 'zod'],
    ],
    types: ['src/control-plane/store/', 'src/control-plane/audit/'],
  },
  {
    files: 'src/control-plane/service/',
    may: [...CONTROL_PLANE, 'src/control-plane/push/', 'src/control-plane/domain/', ...STORE_ROOMS, 'zod'],
  },
  {
    files: 'src/control-plane/service/accounts/',
    may: [...CONTROL_PLANE, 'src/control-plane/service/*', 'src/control-plane/domain/', ...STORE_ROOMS, 'zod'],
  },
  {
    files: 'src/control-plane/service/rules/',
    may: [
      ...[...CONTROL_PLANE, 'src/control-plane/service/*', 'src/control-plane/push/', 'src/control-plane/domain/'],
      ...STORE_ROOMS,
    ],
  },
  {
    files: 'src/control-plane/service/enrollment/',
    may: [
      ...[...CONTROL_PLANE, 'src/control-plane/service/*', 'src/control-plane/push/', 'src/control-plane/domain/'],
      ...STORE_ROOMS,
    ],
  },
  {
    files: 'src/control-plane/paths/',
    may: [...CONTROL_PLANE, 'src/control-plane/service/*', 'src/control-plane/domain/', ...STORE_ROOMS],
    types: ['src/control-plane/push/', 'src/control-plane/health/'],
  },
  {
    files: 'src/control-plane/health/',
    may: [
      ...[...CONTROL_PLANE, 'src/control-plane/push/', 'src/control-plane/domain/', ...STORE_ROOMS],
      'src/control-plane/service/',
      'src/control-plane/paths/',
    ],
    types: ['pino'],
  },
  {
    files: 'src/control-plane/health/send-webhook.ts',
    may: [...CONTROL_PLANE, 'undici', 'standardwebhooks'],
  },
  {
    files: 'src/control-plane/health/deliver-events.ts',
    may: [...CONTROL_PLANE, ...STORE_ROOMS],
    types: ['src/control-plane/service/context.ts', 'pino'],
  },
  // What makes the audit a chain, and sends it elsewhere.
  {
    files: 'src/control-plane/audit/',
    may: [...CONTROL_PLANE, 'src/control-plane/service/*', 'src/control-plane/store/*'],
    types: ['src/control-plane/health/', 'pino'],
  },
  // Logins at an issuer of OpenID Connect.
  {
    files: 'src/control-plane/oidc/',
    may: [
      ...[...CONTROL_PLANE, 'src/control-plane/service/*', 'src/control-plane/service/accounts/', ...STORE_ROOMS],
      ...['src/control-plane/domain/', 'jose', 'openid-client'],
    ],
    types: ['pino'],
  },
  {
    files: 'src/control-plane/push/',
    may: [...CONTROL_PLANE, 'src/control-plane/domain/', ...STORE_ROOMS, 'lru-cache', 'zod'],
  },
  {
    files: 'src/control-plane/domain/',
    may: [...CONTROL_PLANE, '@fastify/rate-limit', 'any-ascii', 'otpauth', 'tweetnacl'],
  },
  { files: 'src/control-plane/domain/passkeys.ts', may: CONTROL_PLANE, lazily: ['@simplewebauthn/server'] },
  { files: 'src/control-plane/store/*', may: STORE },
  { files: 'src/control-plane/store/accounts/', may: [...STORE, 'src/control-plane/store/*'] },
  { files: 'src/control-plane/store/peers/', may: [...STORE, 'src/control-plane/store/*'] },
  { files: 'src/control-plane/store/migrations/', may: [...STORE, 'src/control-plane/store/*'] },
  {
    files: 'src/control-plane/store/sqlite/',
    may: [...STORE, 'src/control-plane/store/*', 'src/control-plane/store/migrations/', 'node:sqlite'],
  },
  {
    files: 'src/control-plane/store/postgres/',
    may: [...STORE, 'src/control-plane/store/*', 'src/control-plane/store/migrations/', 'lru-cache', 'pg'],
  },

  // HKDF, Ed25519, X25519 and SHA-512 are pure functions of what they are given, and none that we
  // should write ourselves.
  { files: 'src/core/crypto/', may: ['src/core/errors/', 'node:crypto', 'node:util', 'tweetnacl'] },
  { files: 'src/core/audit/', may: ['node:crypto', 'safe-stable-stringify'] },
  { files: 'src/core/errors/', may: ['node:util'], types: ['src/core/crypto/secret.ts'] },
  { files: 'src/core/util/', may: ['src/core/crypto/'] },
  { files: 'src/core/net/', may: [...BASICS, 'ip-cidr', 'node:net'] },
  // Parsing a certificate is a pure function of its bytes.
  { files: 'src/core/tls/', may: [...BASICS, 'node:crypto'] },
  { files: 'src/core/wg-quick/', may: [...BASICS, 'src/core/net/'] },
  { files: 'src/core/map/', may: [...BASICS, 'src/core/net/', 'node:net'], types: ['src/contract/'] },
  {
    files: 'src/core/rules/',
    may: [...BASICS, 'src/core/net/', 'src/core/map/', 'src/core/routing/topology/'],
    types: ['src/contract/', 'src/core/host-state/'],
  },
  {
    files: 'src/core/names/',
    may: [...BASICS, 'src/core/net/', 'src/core/map/', 'node:url'],
    types: ['src/core/host-state/'],
    lazily: ['tldts'],
  },
  { files: 'src/core/host-state/', may: [...BASICS, 'src/core/net/'] },
  { files: 'src/core/pins/', may: [...BASICS, 'src/core/net/', 'src/core/map/'] },
  {
    files: 'src/core/routing/*',
    may: [
      ...[...BASICS, 'src/core/net/', 'src/core/map/', 'src/core/names/', 'src/core/host-state/', 'src/core/wg-quick/'],
      'src/core/routing/topology/',
    ],
  },
  // Which peer carries a route.
  {
    files: 'src/core/routing/topology/',
    may: [...BASICS, 'src/core/net/', 'src/core/map/', 'src/core/host-state/', 'src/core/paths/probe-address.ts'],
  },
  {
    files: 'src/core/paths/',
    may: [
      ...BASICS,
      'src/core/net/',
      'src/core/map/',
      'src/core/host-state/',
      'src/core/routing/',
      'src/core/health/peer-health.ts',
      'src/core/health/traffic.ts',
    ],
    types: ['src/core/wg-quick/'],
  },
  {
    files: 'src/core/forward/*',
    may: [
      ...[...BASICS, 'src/core/net/', 'src/core/map/', 'src/core/rules/', 'src/core/host-state/', 'src/core/routing/'],
      'src/core/forward/access/',
      'src/core/paths/probe-address.ts',
    ],
  },
  // The maps of a closed network's packet filter, and the chains that search them.
  {
    files: 'src/core/forward/access/',
    may: [...BASICS, 'src/core/net/', 'src/core/rules/', 'src/core/forward/nft-words.ts'],
  },
  // What the packet rules of other programs do to packets of the tunnel.
  {
    files: 'src/core/forward/foreign/',
    may: [
      ...BASICS,
      'src/core/net/',
      'src/core/map/',
      'src/core/host-state/',
      'src/core/routing/',
      'src/core/forward/*',
    ],
  },
  {
    files: 'src/core/health/*',
    may: [
      ...BASICS,
      'src/core/net/',
      'src/core/map/',
      'src/core/host-state/',
      'src/core/routing/',
      'src/core/forward/',
    ],
    types: ['src/contract/'],
  },
  {
    files: 'src/core/health/report/',
    may: [
      ...BASICS,
      'src/core/net/',
      'src/core/map/',
      'src/core/host-state/',
      'src/core/routing/',
      'src/core/health/*',
    ],
    types: ['src/contract/'],
  },
  // What the control plane derives from the reports of all hosts.
  { files: 'src/core/health/verdict/', may: BASICS, types: ['src/contract/'] },
  {
    files: 'src/core/reconcile/',
    may: [
      ...BASICS,
      'src/core/net/',
      'src/core/map/',
      'src/core/names/',
      'src/core/host-state/',
      'src/core/wg-quick/',
      'src/core/routing/',
      'src/core/forward/',
      'src/core/health/',
      'src/core/paths/',
    ],
  },
  { files: 'src/core/export/', may: [...BASICS, 'src/core/net/', 'src/core/host-state/', 'src/core/wg-quick/'] },
  {
    files: 'src/core/explain/',
    may: [
      ...BASICS,
      'src/core/net/',
      'src/core/map/',
      'src/core/names/',
      'src/core/rules/',
      'src/core/host-state/',
      'src/core/routing/',
      'src/core/forward/',
      'src/core/health/',
      'src/core/paths/',
      'src/core/problems/',
      'src/core/reconcile/',
    ],
  },
  {
    files: 'src/core/doctor/',
    may: [
      ...BASICS,
      'src/core/tls/',
      'src/core/net/',
      'src/core/map/',
      'src/core/names/',
      'src/core/host-state/',
      'src/core/routing/',
      'src/core/forward/',
      'src/core/health/',
      'src/core/paths/',
      'src/core/reconcile/',
      'src/core/problems/',
    ],
  },
  { files: 'src/core/events/', may: [], types: ['src/contract/'] },
  {
    files: 'src/core/problems/',
    may: [...BASICS, 'src/core/net/', 'src/core/map/', 'src/core/names/', 'src/core/pins/', 'src/core/routing/'],
    types: ['src/core/health/'],
  },
  // A program of its own, for browsers.
  {
    files: 'src/console/',
    may: [
      'src/console/',
      'src/core/crypto/fingerprint.ts',
      'src/core/errors/printable.ts',
      'src/core/events/',
      'src/core/export/device-profile.ts',
      'src/core/export/find-losses.ts',
      'src/core/map/connector-rank.ts',
      'src/core/names/label.ts',
      'src/core/util/list-names.ts',
      'preact',
      '@preact/signals',
      'tweetnacl',
      'uqr',
    ],
    types: ['src/contract/'],
  },

  { files: 'src/contract/', may: ['zod'] },
];

type Way = 'value' | 'type' | 'lazy';

interface Import {
  readonly line: number;
  readonly target: string;
  readonly way: Way;
}

const STATEMENT = /^\s*(?:import|export)\s+(type\s)?[^'"`;=]*?\bfrom\s*['"]([^'"]+)['"]/gm;
const BARE = /^\s*import\s*['"]([^'"]+)['"]/gm;
const CALL = /\bimport\(\s*(?:['"]([^'"]+)['"])?/g;

/** Finds what a file imports, and how. A computed `import(…)` shows as the target `(computed)`. */
function findImports(file: string, text: string): Import[] {
  const found = (match: RegExpExecArray, target: string, way: Way): Import => ({
    line: text.slice(0, match.index + match[0].length).split('\n').length,
    target: target.startsWith('.') ? join(dirname(file), target) : packageOf(target),
    way,
  });
  return [
    ...[...text.matchAll(STATEMENT)].map((match) => found(match, match[2] ?? '', match[1] ? 'type' : 'value')),
    ...[...text.matchAll(BARE)].map((match) => found(match, match[1] ?? '', 'value')),
    ...[...text.matchAll(CALL)].map((match) => found(match, match[1] ?? '(computed)', 'lazy')),
  ];
}

/** `kysely/migration` is a part of `kysely`, and `node:fs/promises` of `node:fs`. */
function packageOf(target: string): string {
  const parts = target.split('/');
  return parts.slice(0, target.startsWith('@') ? 2 : 1).join('/');
}

function isIn(place: string, target: string): boolean {
  if (place === 'node:') return target.startsWith(place) && !NAMED_ONLY.includes(target);
  if (place.endsWith('/*')) return dirname(target) === place.slice(0, -2);
  return place.endsWith('/') ? target.startsWith(place) : target === place;
}

function isAllowed(file: string, { target, way }: Import, rule: Rule): boolean {
  const allowed = [`${dirname(file)}/*`, ...rule.may];
  if (way === 'type') allowed.push(...(rule.types ?? []), ...(rule.lazily ?? []));
  if (way === 'lazy') allowed.push(...(rule.lazily ?? []));
  return allowed.some((place) => isIn(place, target));
}

/**
 * Finds the ring that a file is in, by files that import each other one after the next; empty where
 * there is none.
 */
function findCycle(start: string, importsOf: ReadonlyMap<string, readonly string[]>): string[] {
  const paths = [[start]];
  const seen = new Set<string>();
  for (const path of paths) {
    for (const next of importsOf.get(path.at(-1) ?? '') ?? []) {
      if (next === start) return path;
      if (!seen.has(next)) paths.push([...path, next]);
      seen.add(next);
    }
  }
  return [];
}

/** The TypeScript files in `src` under this folder, as paths from there. */
function findSources(root: string): string[] {
  return readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[cm]?[jt]sx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}

/**
 * Checks all files in `src` under this folder, and returns a line for a person on each import that
 * the table doesn't allow.
 */
export function checkImports(root: string): string[] {
  const files = findSources(root);
  const imports = new Map(files.map((file) => [file, findImports(file, readFileSync(join(root, file), 'utf8'))]));
  const wrong = files.flatMap((file) => {
    const [rule] = TABLE.filter(({ files: place }) => isIn(place, file)).toSorted(
      (a, b) => b.files.length - a.files.length,
    );
    if (rule === undefined) return [`${file}: scripts/check-imports.ts has no rule for this place`];
    return (imports.get(file) ?? [])
      .filter((each) => !isAllowed(file, each, rule))
      .map(({ line, target, way }) => `${file}:${line}: ${rule.files} may not import ${target}${manner[way]}`);
  });
  const targets = new Map([...imports].map(([file, found]) => [file, found.map(({ target }) => target)]));
  // A ring is reported once, by its first file.
  const cycles = files
    .map((file) => findCycle(file, targets))
    .filter((ring) => ring.length > 0 && ring[0] === ring.toSorted()[0]);
  return [...wrong, ...cycles.map((ring) => `${[...ring, ring[0]].join(' → ')}: a cycle`)];
}

const manner: Readonly<Record<Way, string>> = { value: '', type: ', not even its types', lazy: ', not even lazily' };

/** A file is one idea, and few ideas are this short. */
const SHORT = { lines: 30, most: 40 };
/** A folder is one subject; the commands are a table, with a file for each row. */
const FOLDER = { most: 20, tables: ['src/cli/commands'] };

/** Checks the number of short files and of files in each folder. Returns a line on each excess. */
export function checkSizes(root: string): string[] {
  const files = findSources(root);
  const short = files.filter((file) => readFileSync(join(root, file), 'utf8').split('\n').length - 1 <= SHORT.lines);
  const folders = [...Map.groupBy(files, (file) => dirname(file))];
  return [
    ...folders
      .filter(([folder, { length }]) => length > FOLDER.most && !FOLDER.tables.includes(folder))
      .map(([folder, { length }]) => `${folder}: has ${length} files, at most ${FOLDER.most}; divide it by subject`),
    ...(short.length > SHORT.most
      ? [
          `src: has ${short.length} files of up to ${SHORT.lines} lines, at most ${SHORT.most}; merge some into the files of their subjects: ${short.join(', ')}`,
        ]
      : []),
  ];
}

if (import.meta.main) {
  const root = process.argv[2] ?? join(import.meta.dirname, '..');
  const wrong = [...checkImports(root), ...checkSizes(root)];
  for (const line of wrong) process.stdout.write(`${line}\n`);
  if (wrong.length > 0) process.stdout.write(styleText('red', `${wrong.length} places to change\n`));
  process.exitCode = wrong.length > 0 ? 1 : 0;
}
