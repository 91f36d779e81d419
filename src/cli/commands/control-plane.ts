import type { Logger } from 'pino';
import type { ControlPlane } from '../../control-plane/serve.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import { printable, WrongUsage } from '../../core/errors/index.ts';
import { isLoopback } from '../../core/net/endpoint.ts';
import { openSupervisor } from '../context.ts';
import { keepAlive } from '../daemon/daemon-unit.ts';
import { untilStopped } from '../daemon/stop-signals.ts';
import { exitCodes } from '../exit-code.ts';
import { type Flag, jsonFlag } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { parseListenAddressOrSocket } from '../input/listen-address.ts';
import { describeRevoked, keepTokensFlag } from '../input/password.ts';
import { readSecret, readSecretFile } from '../input/secrets.ts';
import { describeMade } from '../output/describe-made.ts';
import { green, note, print, printJson, warn } from '../output/output.ts';
import type { Command } from '../parse/command.ts';
import { oidcFlags, readOidc } from '../parse/oidc-flags.ts';
import { operationFlags, readOperation } from '../parse/operation-flags.ts';
import { readWebhook, webhookFlags } from '../parse/webhook-flags.ts';

const defaultData = '/var/lib/cpn-control-plane';
const dataFlag: Flag = { kind: 'text', value: 'DIR', summary: 'folder of the database', byDefault: defaultData };

const databaseFlag: Flag = {
  kind: 'text',
  value: 'URL',
  summary: 'use PostgreSQL: postgres://USER@HOST/NAME, or file:PATH of a file that holds the URL',
};

const presenceSummary = 'how long the control plane stores when each host was last seen; 0 stores nothing';

export const serveControlPlane: Command = {
  name: 'control-plane serve',
  summary: 'Serve the embedded control plane until stopped',
  flags: {
    listen: {
      kind: 'text',
      value: 'HOST:PORT',
      summary: 'address to listen on, or unix:PATH for a Unix socket',
      byDefault: '127.0.0.1:8787',
    },
    data: dataFlag,
    database: databaseFlag,
    'owner-email': { kind: 'text', value: 'EMAIL', summary: 'create this owner if there is no user yet' },
    'owner-password-file': { kind: 'text', value: 'PATH', summary: "file that holds only the owner's password" },
    'audit-days': { kind: 'text', value: 'DAYS', summary: 'how long audit entries are kept', byDefault: '365' },
    'audit-log': {
      kind: 'text',
      value: 'PATH',
      summary:
        'also write the audit as JSON lines to this file, to syslog://HOST:PORT, syslogs://HOST:PORT, or - for stdout',
    },
    'presence-days': { kind: 'text', value: 'DAYS', summary: presenceSummary, byDefault: '30' },
    ...operationFlags,
    ...oidcFlags,
    ...webhookFlags,
    console: { kind: 'switch', summary: 'serve the web console', byDefault: 'yes' },
    'allow-public-routes': { kind: 'switch', summary: 'let networks advertise public routes and 0.0.0.0/0' },
  },
  examples: [
    'cpn control-plane serve --owner-email me@example.net --owner-password-file ./password',
    'cpn control-plane serve --database file:/etc/cpn/database-url',
  ],
  async run(input) {
    const { serve } = await import('../../control-plane/serve.ts');
    const { findConsole } = await import('../../control-plane/http/console.ts');
    const address = parseListenAddressOrSocket(input.nameOf('listen'), input.text('listen') ?? '127.0.0.1:8787');
    const operation = readOperation(input);
    if (address.socketPath !== null && operation.tls !== null) throw new WrongUsage(noTlsOnSocket);
    const { openLog } = await import('../output/log.ts');
    const logger = openLog(input, 'info');
    const console = input.switch('console', true) ? findConsole() : null;
    const starting = serve({
      ...address,
      ...operation,
      ...(await openOidc(input, operation.publicUrls)),
      dataDir: input.text('data') ?? defaultData,
      database: await readDatabase(input),
      owner: await readOwner(input),
      auditDays: input.number('audit-days', 1, 36_500) ?? 365,
      webhook: await openWebhook(input),
      auditLog: await openLogOfAudit(input),
      presenceDays: input.number('presence-days', 0, 36_500) ?? 30,
      allowPublicRoutes: input.switch('allow-public-routes'),
      console,
      logger,
    });
    // During the start, a signal waits: the files may have been read before it arrived.
    process.on('SIGHUP', () => void starting.then((server) => reload(server, logger)).catch(() => undefined));
    const server = await starting;
    // A process that reads the message may stop this one immediately.
    const stopped = untilStopped();
    note(`control plane listening on ${server.url}`);
    const consoleUrl = operation.publicUrls[0]?.href ?? (address.socketPath === null ? `${server.url}/` : null);
    if (console !== null && consoleUrl !== null) note(`console at ${consoleUrl}`);
    const supervisor = await openSupervisor(input, logger);
    await supervisor?.report({ state: 'ready', status: `listening on ${server.url}` });
    const stopReports = keepAlive(supervisor);
    if (server.metricsUrl !== null) note(`metrics at ${server.metricsUrl}`);
    if (!isLoopback(address.host) && operation.tls === null && operation.proxies.length === 0) warn(plainHttp);
    await stopped;
    stopReports();
    // The end of the process would overtake a report that is not delivered yet.
    await Promise.all([supervisor?.report({ state: 'stopping' }), server.close()]);
    return exitCodes.done;
  },
};

export const backUpControlPlane: Command = {
  name: 'control-plane backup',
  argument: { usage: '<file>', summary: 'file to write; must not exist' },
  summary: 'Back up the embedded database to a file and verify it; the control plane may be running',
  flags: { data: dataFlag },
  examples: ['cpn control-plane backup /var/backups/cpn-2030-01-31.db'],
  async run(input) {
    const { backUp } = await import('../../control-plane/store/sqlite/backup.ts');
    const file = input.argument('file') ?? '';
    const bytes = backUp(input.text('data') ?? defaultData, file);
    print(`${green('backed up')} to ${file}, ${Math.ceil(bytes / 1024)} KiB`);
    return exitCodes.done;
  },
};

export const resetOwner: Command = {
  name: 'control-plane reset-owner',
  summary: 'Set a new password for an owner, end its sessions and revoke its tokens; the control plane may be running',
  flags: {
    data: dataFlag,
    database: databaseFlag,
    email: { kind: 'text', value: 'EMAIL', summary: 'e-mail address of the owner' },
    'password-file': { kind: 'text', value: 'PATH', summary: 'file that holds only the new password' },
    ...keepTokensFlag,
    ...jsonFlag,
  },
  examples: ['cpn control-plane reset-owner --email me@example.net --password-file ./password'],
  async run(input) {
    const email = input.need('email');
    const password = await readSecretFile(input.need('password-file'), 'the new password');
    const where = { dataDir: input.text('data') ?? defaultData, database: await readDatabase(input) };
    const { resetOwner: reset } = await import('../../control-plane/reset-owner.ts');
    const keepsTokens = input.switch('keep-tokens');
    const done = await reset(where, { email, password }, { keepsTokens });
    const { factorsRemoved, sessionsEnded, tokensRevoked, personalTokens, made, database, ...owner } = done;
    if (input.switch('json')) {
      printJson({
        ...{ email: owner.email, sessions_ended: sessionsEnded, factors_removed: factorsRemoved },
        ...{ tokens_revoked: tokensRevoked, personal_tokens: personalTokens, ...made },
      });
      return exitCodes.done;
    }
    print(
      `${green('reset')} the password of ${printable(owner.email)} in ${printable(database)}; sessions ended: ${sessionsEnded}`,
    );
    if (factorsRemoved > 0) note(`removed second factors: ${factorsRemoved}`);
    if (tokensRevoked.length > 0) note(describeRevoked(tokensRevoked));
    if (personalTokens > 0) {
      note(
        `personal tokens still valid: ${personalTokens}; list them with "cpn token list", revoke with "cpn token revoke"`,
      );
    }
    for (const line of describeMade({ users: made.users_made, keys: made.keys_made }, 'the owner')) note(line);
    return exitCodes.done;
  },
};

const noTlsOnSocket = 'a Unix socket has no TLS; leave out --tls-cert and --tls-key, or listen on HOST:PORT';

const plainHttp =
  'passwords, keys and tokens cross the network unencrypted; give --tls-cert and --tls-key, or --trust-proxy and a TLS proxy';

/** After an unusable certificate, the old one stays, and the control plane stays up. */
function reload({ reload }: ControlPlane, log: Logger): void {
  try {
    const certificate = reload();
    if (certificate === null) log.info('nothing to reload: there is no TLS certificate');
    else log.info({ certificate }, 'certificate reloaded');
  } catch (error) {
    log.error({ error: error instanceof Error ? error.message : String(error) }, 'certificate not reloaded');
  }
}

async function readDatabase(input: Input): Promise<Secret | null> {
  const given = input.text('database');
  if (given === undefined) return null;
  if (input.text('data') !== undefined) {
    throw new WrongUsage('--data and --database exclude each other; give one of them');
  }
  const url = await readSecret(given, "the database's URL");
  const { parseDatabaseUrl } = await import('../../control-plane/store/postgres/database-url.ts');
  const { password } = parseDatabaseUrl(url);
  if (password !== undefined && input.isTyped('database') && !/^(file:|-$)/.test(given)) {
    throw new WrongUsage(typedPassword);
  }
  return url;
}

const typedPassword =
  'other users of this machine can read a password in --database; put the URL into a file and give --database file:PATH, or the password into PGPASSWORD or ~/.pgpass';

async function openWebhook(input: Input) {
  const given = await readWebhook(input);
  if (given === null) return null;
  const { parseWebhook } = await import('../../control-plane/health/webhook-settings.ts');
  return parseWebhook(given);
}

async function openOidc(input: Input, publicUrls: readonly URL[]) {
  const { oidc, ...others } = await readOidc(input);
  if (oidc === null) return { oidc, ...others };
  const { parseOidcSettings } = await import('../../control-plane/oidc/parse-settings.ts');
  return { oidc: parseOidcSettings(oidc, publicUrls), ...others };
}

async function openLogOfAudit(input: Input) {
  const given = input.text('audit-log');
  if (given === undefined) return null;
  const { openAuditLog } = await import('../../control-plane/audit/audit-log.ts');
  return openAuditLog(given, input.nameOf('audit-log'));
}

async function readOwner(input: Input) {
  const email = input.text('owner-email');
  const file = input.text('owner-password-file');
  if (email === undefined && file === undefined) return null;
  if (email === undefined || file === undefined) {
    throw new WrongUsage('--owner-email and --owner-password-file go together; give both, or neither');
  }
  return { email, password: await readSecretFile(file, "the owner's password") };
}
