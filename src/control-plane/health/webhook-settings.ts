import { isIP } from 'node:net';
import { auditActions, matchesAction } from '../../contract/audit.ts';
import { EventType } from '../../contract/event.ts';
import { Secret } from '../../core/crypto/secret.ts';
import { InvalidValue } from '../../core/errors/index.ts';
import { type Prefix, parsePrefixOrAddress } from '../../core/net/cidr.ts';
import { createAddressCheck, type FindAddresses, hostOf } from './receiver-addresses.ts';

export interface Webhook {
  /** Secret, because its path may grant access. */
  readonly url: Secret;
  /** Each one signs all messages. The form is `whsec_` and base64. */
  readonly secrets: readonly Secret[];
  readonly types: ReadonlySet<EventType>;
  /** The actions of the audit that it receives, as in {@link matchesAction}. */
  readonly actions: readonly string[];
  /** Permitted addresses that are not public, or that use plain http. */
  readonly allow: readonly Prefix[];
  /** Resolves names instead of the resolver of this host. */
  readonly findAddresses?: FindAddresses;
}

/** A webhook in the operator's form. */
interface WebhookTexts {
  readonly url: Secret;
  /** One per line. */
  readonly secrets: Secret;
  /** Empty for all types of events. Those of the audit begin with `audit.`. */
  readonly events: readonly string[];
  readonly allow: readonly string[];
}

/** @throws InvalidValue, which shows neither the URL nor the secret */
export function parseWebhook({ url, secrets, events, allow }: WebhookTexts): Webhook {
  const allowed = allow.map((text) => parsePrefixOrAddress(text, '--webhook-allow'));
  checkUrl(url, allowed);
  const [actions, types] = [events.filter(isOfAudit), events.filter((each) => !isOfAudit(each))];
  return {
    url,
    secrets: parseSecrets(secrets),
    types: new Set(events.length === 0 ? EventType.options : types.map(parseType)),
    actions: actions.map(parseAction),
    allow: allowed,
  };
}

function checkUrl(secret: Secret, allow: readonly Prefix[]): void {
  const text = secret.reveal();
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null) {
    throw new InvalidValue('--webhook', undefined, 'is not a URL', 'write it like https://hooks.example.net/cpn');
  }
  if (!/^https?:$/.test(url.protocol)) {
    const remedy = 'use https, or http to an address that --webhook-allow names';
    throw new InvalidValue('--webhook', `${url.protocol}//${url.host}`, 'is not https', remedy);
  }
  if (url.username !== '' || url.password !== '') {
    throw new InvalidValue('--webhook', undefined, 'has a user or a password', 'the receiver checks the signature');
  }
  const isPlain = url.protocol === 'http:';
  const host = hostOf(url);
  if (isPlain && allow.length === 0) {
    const remedy = 'use https, or name the address of the receiver with --webhook-allow';
    throw new InvalidValue('--webhook', undefined, 'is plain http', remedy);
  }
  const reason = isIP(host) === 0 ? null : createAddressCheck(allow, isPlain)(host);
  if (reason !== null) {
    const remedy = `if it is the receiver, add --webhook-allow ${host}`;
    throw new InvalidValue('--webhook', undefined, `has an address that is ${reason}`, remedy);
  }
}

function parseSecrets(secrets: Secret): Secret[] {
  return secrets
    .reveal()
    .trim()
    .split('\n')
    .map((line, index) => parseSecret(line.trim(), index));
}

/** The specification requires 24 to 64 bytes. */
function parseSecret(line: string, index: number): Secret {
  const [, text = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(line) ?? [];
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length >= 24 && bytes.length <= 64 && bytes.toString('base64') === text) return new Secret(line);
  throw new InvalidValue(
    '--webhook-secret-file',
    undefined,
    `does not hold "whsec_" and the base64 of 24 to 64 bytes in line ${index + 1}`,
    'make one: (umask 077; echo "whsec_$(openssl rand -base64 32)" > FILE)',
  );
}

function parseType(text: string): EventType {
  const type = EventType.safeParse(text);
  if (type.success) return type.data;
  const remedy = `the types are ${EventType.options.join(', ')}, and audit.* for the audit`;
  throw new InvalidValue('--webhook-events', text, 'is not a type of events', remedy);
}

const auditPrefix = 'audit.';

function isOfAudit(text: string): boolean {
  return text.startsWith(auditPrefix);
}

function parseAction(text: string): string {
  const pattern = text.slice(auditPrefix.length);
  if (auditActions.some((action) => matchesAction(action, pattern))) return pattern;
  const remedy = `write audit.* for all, or some of ${auditActions.map((each) => `audit.${each}`).join(', ')}`;
  throw new InvalidValue('--webhook-events', text, 'matches no action of the audit', remedy);
}
