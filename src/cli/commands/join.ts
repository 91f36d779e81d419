import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { findJoined } from '../../app/join/check-membership.ts';
import type { JoinRequest } from '../../app/join/join-request.ts';
import type { NamedOptions } from '../../app/join/kept-options.ts';
import type { Tools } from '../../app/tools.ts';
import { maskTokens, Secret } from '../../core/crypto/secret.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import { peerTypes } from '../../core/map/model.ts';
import { parseEndpoint } from '../../core/net/endpoint.ts';
import { parseLinkName } from '../../core/net/link-name.ts';
import type { Joined } from '../../store/state/state.ts';
import { openTools, warnOfTrust } from '../context.ts';
import { enableDaemon } from '../daemon/daemon-unit.ts';
import { explainEnding } from '../daemon/stop-signals.ts';
import { exitCodes } from '../exit-code.ts';
import { apiFlags, jsonFlag } from '../input/flags.ts';
import { type Input, parseChoice } from '../input/input.ts';
import { keyVariable, readJoinFile } from '../input/join-file.ts';
import { askSecret, hasTerminal } from '../input/password.ts';
import { checkToken, readToken } from '../input/secrets.ts';
import { needServiceAddress, withEnvironmentProxy } from '../input/service-address.ts';
import { endStep, note, printError } from '../output/output.ts';
import { showEarlier, showJoin, suggestNext } from '../output/show-join.ts';
import type { Command } from '../parse/command.ts';
import { listedOptions, optionFlags, readNetworkSecret, readOptions } from '../parse/host-options.ts';
import { checkLoginFlags, loginFlags, obtainOwnKey } from './join-login.ts';

export const join: Command = {
  name: 'join',
  argument: {
    usage: '[key]',
    summary: 'the cpn_ key, better as file:PATH, "-" for standard input or CPN_ENROLLMENT_KEY; prompts on a terminal',
  },
  summary: 'Join a private network: generate keys, enrol, write the wg-quick file, bring the interface up',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    name: { kind: 'text', value: 'NAME', summary: 'name of this host in the network', byDefault: 'the host name' },
    type: {
      kind: 'text',
      value: 'TYPE',
      summary: 'origin (a server), admin_device (a laptop or phone) or connector',
      byDefault: 'origin',
      choices: peerTypes,
    },
    endpoint: {
      kind: 'text',
      value: 'HOST:PORT',
      summary: 'where peers can dial this host, or "auto"; leave out behind NAT',
      choices: ['auto'],
    },
    interface: { kind: 'text', value: 'IF', summary: 'name of the interface', byDefault: 'first free cpnN' },
    wait: { kind: 'text', value: 'SECONDS', summary: 'how long to wait for the first handshake', byDefault: '7' },
    'token-file': {
      kind: 'text',
      value: 'PATH',
      summary: 'file with a personal token; stored to sync the network where the control plane issues no peer token',
    },
    'from-config': {
      kind: 'text',
      value: 'PATH',
      summary: 'read these flags from a file; does nothing if this host has already joined through that control plane',
    },
    enable: {
      kind: 'switch',
      summary: 'start cpn.service, where it is installed, to reconcile the network',
      byDefault: 'yes',
    },
    ...loginFlags,
    ...optionFlags,
  },
  examples: [
    'cpn join - --api https://cp.example.net --type origin --endpoint 203.0.113.22:51820 <key',
    'cpn join --login --api https://cp.example.net',
  ],
  async run(given) {
    const file = given.text('from-config');
    const input = file === undefined ? given : given.above(await readJoinFile(file, fileFlags));
    const tools = await openTools(input);
    const earlier = file === undefined ? null : await findEarlier(tools, input);
    if (earlier === null) {
      checkLoginFlags(input);
      const request = await readRequest(input);
      const { joinNetwork } = await import('../../app/join/join.ts');
      const report = await explainEnding(input.switch('login') ? interruptedLogin : interrupted, () =>
        joinNetwork(tools, request),
      );
      endStep(report.handshake === false && request.handshakeTimeoutMs !== 0 ? 'open' : 'done');
      showJoin(report, input.switch('json'));
      if (report.savedProxy !== null) note(report.savedProxy);
      await warnOfTrust(report.state, input);
      const isKept = input.switch('enable', true) && (await enableDaemon(input));
      if (report.unloaded !== null) {
        printError(report.unloaded);
        return exitCodes.failed;
      }
      if (process.stderr.isTTY && !input.switch('json')) note(await suggestNext(report, isKept, input));
      return exitCodes.done;
    }
    showEarlier(earlier, input.switch('json'));
    if (input.switch('enable', true)) await enableDaemon(input);
    return exitCodes.done;
  },
};

const interrupted =
  'the join was interrupted; type "cpn join" with the same key to continue it, or "cpn leave" with its interface to undo it';

const interruptedLogin =
  'the join was interrupted; "cpn status" shows its interface, if it has one; type "cpn leave" with that interface, and join again';

/** The flags that a file may contain. The output format is the caller's choice. */
const { json: _json, 'from-config': _file, ...others } = join.flags;
const fileFlags = Object.fromEntries(Object.entries(others).filter(([name]) => !Object.hasOwn(loginFlags, name)));

async function findEarlier(tools: Pick<Tools, 'store'>, input: Input): Promise<Joined | null> {
  return findJoined(tools, await needServiceAddress(input), input.text('interface') ?? null);
}

async function readRequest(input: Input): Promise<JoinRequest> {
  const link = input.text('interface');
  const endpoint = input.text('endpoint');
  const patience = input.number('wait', 0, 3600);
  const tokenFile = input.text('token-file');
  const isLogin = input.switch('login');
  const type = isLogin ? 'admin_device' : parseChoice('--type', input.text('type') ?? 'origin', peerTypes);
  const address = await needServiceAddress(input);
  const asked: Omit<JoinRequest, 'service' | 'token'> = {
    name: input.text('name') ?? hostname(),
    type,
    endpoint:
      endpoint === undefined || endpoint === 'auto' ? (endpoint ?? null) : parseEndpoint(endpoint, '--endpoint'),
    interface: link === undefined ? null : parseLinkName(link, '--interface'),
    options: await readOptions(input, type),
    named: new Set(Object.entries(names).flatMap(([flag, name]) => (input.has(flag) ? [name] : []))),
    personalToken:
      tokenFile === undefined || isLogin ? null : await readToken(`file:${tokenFile}`, 'the personal token'),
    networkSecret: await readNetworkSecret(input),
    isUnattended: input.text('from-config') !== undefined,
    handshakeTimeoutMs: patience === undefined ? null : 1000 * patience,
  };
  // Comes last, so that mistakes in flags are reported before the prompt.
  if (isLogin) return { ...asked, ...(await obtainOwnKey(input, address)) };
  return { ...asked, service: withEnvironmentProxy(address, input.environment), token: await readKey(input) };
}

/** The option of each flag that a host which joins again may omit. */
const names: Readonly<Record<string, NamedOptions>> = {
  name: 'name',
  type: 'type',
  proxy: 'proxy',
  'ca-file': 'authorities',
  endpoint: 'endpoint',
  ...Object.fromEntries(listedOptions.map(([flag, { option }]) => [flag, option])),
};

async function readKey(input: Input) {
  const given = input.argument('key') ?? input.environment[keyVariable] ?? findCredential(input);
  if (canPrompt(input, given)) {
    const typed = await askSecret(
      'Enrolment key',
      'no enrolment key was given; an admin makes one with "cpn key create"',
    );
    return checkPrefix(checkToken(new Secret(typed.trim()), 'the enrolment key'), typed);
  }
  if (given === undefined) {
    throw new WrongUsage(
      `the enrolment key is missing; give it as file:PATH, on standard input with "-", in ${keyVariable}, or as the credential ${credential}; an admin makes one with "cpn key create"`,
    );
  }
  return checkPrefix(await readToken(given, 'the enrolment key'), given);
}

/** A join from a file is unattended, even on a terminal. */
function canPrompt(input: Input, given: string | undefined): boolean {
  return hasTerminal() && (given === '-' || (given === undefined && !input.has('from-config')));
}

function checkPrefix(key: Secret, given: string): Secret {
  if (key.reveal().startsWith('cpn_')) return key;
  // The argument may be another secret.
  const remedy = existsSync(given)
    ? `where that is a file, write file:${maskTokens(given)}`
    : 'give all of what "cpn key create" showed';
  throw new WrongUsage(`the enrolment key must begin with "cpn_"; ${remedy}`);
}

/** The credential of LoadCredential= in a unit, or of a VM or container (systemd.exec(5)). */
const credential = 'cpn.enrollment-key';

function findCredential({ environment: { CREDENTIALS_DIRECTORY } }: Input): string | undefined {
  if (CREDENTIALS_DIRECTORY === undefined) return undefined;
  const path = `${CREDENTIALS_DIRECTORY}/${credential}`;
  return existsSync(path) ? `file:${path}` : undefined;
}
