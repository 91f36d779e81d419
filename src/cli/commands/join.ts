import { hostname } from 'node:os';
import type { JoinReport, JoinRequest } from '../../app/join.ts';
import type { PeerType } from '../../contract/peer.ts';
import { describeTrouble, type SecretTrouble } from '../../core/compare-secrets.ts';
import { InvalidValue, printable, WrongUsage } from '../../core/errors.ts';
import { type PinRule, peerTypes, pinRules } from '../../core/model.ts';
import type { Secret } from '../../core/secret.ts';
import { apiFlags, type Command, jsonFlag } from '../command.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import type { Input } from '../input.ts';
import { bold, green, note, print, printJson, warn, yellow } from '../output.ts';
import { readSecret, readSecretBytes, readSecretFile } from '../secrets.ts';
import { needServiceAddress } from '../service-address.ts';

export const join: Command = {
  name: 'join',
  argument: {
    usage: '[key]',
    summary: 'the cpn_ key; also file:PATH, "-" for standard input, or CPN_ENROLLMENT_KEY',
  },
  summary: 'Join a private network: make keys, enrol, write the wg-quick file, bring the interface up',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    name: { kind: 'text', value: 'NAME', summary: 'name of this host in the network', byDefault: 'the host name' },
    type: {
      kind: 'text',
      value: 'TYPE',
      summary: 'connector, admin_device or origin',
      byDefault: 'origin',
      choices: peerTypes,
    },
    endpoint: {
      kind: 'text',
      value: 'HOST:PORT',
      summary: 'where peers can dial this host, or "auto"; none behind NAT',
      choices: ['auto'],
    },
    interface: { kind: 'text', value: 'IF', summary: 'name of the interface', byDefault: 'first free cpnN' },
    'listen-port': {
      kind: 'text',
      value: 'PORT',
      summary: 'UDP port to listen on',
      byDefault: "the endpoint's, else any",
    },
    mtu: { kind: 'text', value: 'BYTES', summary: 'MTU of the interface', byDefault: 'fitted to the underlay' },
    'accept-routes': { kind: 'switch', summary: 'take the routes that connectors serve', byDefault: 'yes' },
    masquerade: {
      kind: 'switch',
      summary: "as a connector, give the tunnel's packets this host's address",
      byDefault: 'yes',
    },
    wait: { kind: 'text', value: 'SECONDS', summary: 'how long to wait for a first handshake', byDefault: '7' },
    probe: {
      kind: 'list',
      value: 'HOST[:PORT]',
      summary: 'as a connector, leave a route to the others while no host named so answers behind it, by TCP or ping',
    },
    hosts: { kind: 'switch', summary: 'name the peers in the hosts file: PEER.NETWORK.cpn.internal', byDefault: 'no' },
    'token-file': {
      kind: 'text',
      value: 'PATH',
      summary:
        'a file with a personal token, kept here to follow the network with where the service gives this host none of its own',
    },
    'network-secret-file': {
      kind: 'text',
      value: 'PATH',
      summary:
        'a file with 32 random bytes or more, the same on every host: only hosts that have it get a handshake, whatever the control plane says',
    },
    pin: {
      kind: 'text',
      value: 'RULE',
      summary:
        'of a peer whose key becomes another without its own word for it: report takes it and says so, strict keeps the known one until "cpn accept"',
      byDefault: 'report',
      choices: pinRules,
    },
    'rotate-every': {
      kind: 'text',
      value: 'TIME',
      summary: 'how old a key pair may get, such as 30d, before the daemon makes a new one',
      byDefault: 'for ever',
    },
    'allow-route': { kind: 'list', value: 'CIDR', summary: 'take this route although the guard refuses it' },
  },
  examples: ['cpn join - --api https://cp.example.net --type origin --endpoint 203.0.113.22:51820 <key'],
  async run(input) {
    const request = await readRequest(input);
    const { joinNetwork } = await import('../../app/join.ts');
    const report = await joinNetwork(await openTools(input), request);
    show(report, input.switch('json'));
    return exitCodes.done;
  },
};

/** Seconds that a key pair may be told to live. A change of keys interrupts the tunnel for a moment. */
const shortestKeyLife = 3_600;
const longestKeyLife = 3_650 * 86_400;

async function readRequest(input: Input): Promise<JoinRequest> {
  const { parseEndpoint } = await import('../../core/endpoint.ts');
  const { parseLinkName } = await import('../../core/link-name.ts');
  const link = input.text('interface');
  const endpoint = input.text('endpoint');
  const patience = input.number('wait', 0, 3600);
  const tokenFile = input.text('token-file');
  const secretFile = input.text('network-secret-file');
  const type = readType(input.text('type') ?? 'origin');
  const probes = await readProbes(input, type);
  return {
    service: needServiceAddress(input),
    name: input.text('name') ?? hostname(),
    type,
    endpoint:
      endpoint === undefined || endpoint === 'auto' ? (endpoint ?? null) : parseEndpoint(endpoint, '--endpoint'),
    interface: link === undefined ? null : parseLinkName(link, '--interface'),
    options: {
      listenPort: input.number('listen-port', 1, 65535) ?? null,
      mtu: input.number('mtu', 576, 9000) ?? null,
      acceptRoutes: input.switch('accept-routes', true),
      masquerade: input.switch('masquerade', true),
      allowRoutes: await readAllowedRoutes(input),
      probes,
      hosts: input.switch('hosts'),
      pin: readPinRule(input),
      rotateEvery: input.period('rotate-every', shortestKeyLife, longestKeyLife) ?? null,
    },
    token: await readKey(input),
    personalToken: tokenFile === undefined ? null : await readSecretFile(tokenFile, 'the personal token'),
    networkSecret: secretFile === undefined ? null : await readNetworkSecret(secretFile),
    patience: patience === undefined ? null : 1000 * patience,
  };
}

function readType(text: string): PeerType {
  const type = peerTypes.find((each) => each === text);
  if (type) return type;
  throw new InvalidValue('--type', text, `is none of ${peerTypes.join(', ')}`);
}

function readPinRule(input: Input): PinRule {
  const text = input.text('pin') ?? 'report';
  const rule = pinRules.find((each) => each === text);
  if (rule) return rule;
  throw new InvalidValue('--pin', text, `is none of ${pinRules.join(', ')}`);
}

async function readAllowedRoutes(input: Input) {
  const { parsePrefix } = await import('../../core/cidr.ts');
  return input.list('allow-route').map((text) => parsePrefix(text, '--allow-route'));
}

/** Processes and connections that a round may begin at once. */
const mostProbes = 16;

async function readProbes(input: Input, type: PeerType) {
  const { parseProbeTarget } = await import('../../core/probe-target.ts');
  const probes = input.list('probe').map((text) => parseProbeTarget(text, '--probe'));
  if (probes.length > mostProbes) {
    throw new WrongUsage(`--probe was given ${probes.length} times; name at most ${mostProbes} hosts`);
  }
  if (probes.length > 0 && type !== 'connector') {
    throw new WrongUsage(`--probe is for the LAN behind a connector; leave it out, or join with --type connector`);
  }
  return probes;
}

async function readNetworkSecret(given: string): Promise<Secret> {
  const { parseNetworkSecret } = await import('../../core/network-secret.ts');
  const path = given.replace(/^file:/, '');
  return parseNetworkSecret(await readSecretBytes(path, 'the network secret'), `--network-secret-file ${path}`);
}

async function readKey(input: Input) {
  const given = input.argument('key') ?? input.environment.CPN_ENROLLMENT_KEY;
  if (given === undefined) {
    throw new WrongUsage(
      'the enrolment key is missing; give it as file:PATH, on standard input with "-", or in CPN_ENROLLMENT_KEY',
    );
  }
  return readSecret(given, 'the enrolment key');
}

function show({ state, handshake, troubles }: JoinReport, json: boolean): void {
  const { membership, interface: link, keyPair } = state;
  const { map, peer } = membership;
  if (json) {
    printJson({
      interface: link,
      address: peer.address,
      network: { id: map.id, name: map.name },
      peer: { id: peer.id, name: peer.name },
      public_key: keyPair.publicKey,
      handshake: handshake === true,
    });
    for (const trouble of troubles) warn(describeTrouble(trouble));
  } else {
    const [network, name] = [map.name, peer.name].map(printable);
    print(`${green('joined')} ${bold(network ?? '')} as ${name}: ${link} has ${bold(peer.address)}`);
    note(describeHandshake(handshake, link, troubles));
  }
}

function describeHandshake(handshake: boolean | null, link: string, troubles: readonly SecretTrouble[]): string {
  if (handshake === true) return 'a peer answered';
  if (troubles.length > 0) {
    const why = troubles.map((trouble) => printable(describeTrouble(trouble)));
    return `${yellow('no peer answered yet')}: ${why.join('; ')}`;
  }
  if (handshake === null) return 'no peer of this network can be dialled from here yet';
  return `${yellow('no peer answered yet')}; they learn of this host at their next pass; see "cpn status ${link}"`;
}
