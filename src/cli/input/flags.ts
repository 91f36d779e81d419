import { InvalidValue, Refused } from '../../core/errors/index.ts';

export type Flags = Readonly<Record<string, Flag>>;

/** Every flag also has a variable: `CPN_` and its name in capitals. */
export interface Flag {
  /** A list may be repeated. A switch takes no value and has a `--no-` form. */
  readonly kind: 'text' | 'switch' | 'list';
  readonly summary: string;
  /** The placeholder of the value in help. */
  readonly value?: string;
  /** The default in help. */
  readonly byDefault?: string;
  /** Special words that the flag accepts, for completion and the manual. */
  readonly choices?: readonly string[];
}

/** True for a switch that may be on where it is not typed: only its `--no-` form turns it off. */
export function mayBeOn({ kind, byDefault }: Flag): boolean {
  return kind === 'switch' && (byDefault === 'yes' || byDefault === 'unchanged');
}

/** Reads the value of a switch. @throws InvalidValue */
export function readSwitch(name: string, text: string): boolean {
  if (/^(1|true|yes|on)$/i.test(text)) return true;
  if (/^(0|false|no|off)$/i.test(text)) return false;
  throw new InvalidValue(name, text, 'is not yes or no');
}

/** The flags of every command that reads. */
export const jsonFlag: Flags = {
  json: { kind: 'switch', summary: 'print one JSON document on stdout, and nothing else' },
};

export const wideFlag: Flags = {
  wide: { kind: 'switch', summary: 'show whole rows, also on a narrow terminal' },
};

export const yesFlag: Flags = {
  yes: {
    kind: 'switch',
    summary: 'skip the confirmation; needed where there is no terminal',
  },
};

/** The flag of commands that destroy or interrupt: all networks must be an explicit choice. */
export const allFlag: Flags = {
  all: { kind: 'switch', summary: 'every network that this host has joined' },
};

export const apiMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export const apiFlags: Flags = {
  api: { kind: 'text', value: 'URL', summary: 'URL of the control plane, or unix:PATH' },
  proxy: {
    kind: 'text',
    value: 'URL',
    summary: 'HTTP proxy to the control plane; also file:PATH, or "none" for a direct connection',
    byDefault: 'the saved one, else HTTPS_PROXY and NO_PROXY',
    choices: ['none'],
  },
  'ca-file': {
    kind: 'text',
    value: 'PATH',
    summary:
      'PEM file with the only CAs that may issue the certificate of the control plane; its content is saved; "none" for the CAs of this machine',
    byDefault: 'the saved ones, else the CAs of this machine',
    choices: ['none'],
  },
  'insecure-http': {
    kind: 'switch',
    summary: 'allow plain http beyond loopback; sends keys and tokens unencrypted',
  },
};

/** The flags for fields of the API. A password may come from a prompt. */
const flagOf: Readonly<Record<string, string>> = {
  add_routes: 'add-route',
  expires_at: 'expires',
  expires_in_days: 'expires-in-days',
  expires_in_hours: 'expires-in-hours',
  max_uses: 'max-uses',
  peer_expires_in_hours: 'peer-expires',
  peer_type: 'type',
  peer_types: 'type',
  private_cidr: 'cidr',
  remove_routes: 'remove-route',
  route_dns: 'route-dns',
  routes: 'route',
};

/** A field, or an entry of a field, in a refusal's list of violations: `routes.0: is no range`. */
const listedField = /(?<=[:;] |\()(\w+)(?:[.[][\w.[\]]*)?(?=: )/g;

/** Replaces the API's field names with flags, if the control plane rejects values (422). */
export function nameFlags(error: unknown, flags: Flags): unknown {
  if (!(error instanceof Refused) || error.status !== 422) return error;
  error.message = error.message.replace(listedField, (field, name: string) => {
    const flag = flagOf[name] ?? name;
    return Object.hasOwn(flags, flag) ? `--${flag}` : field;
  });
  return error;
}
