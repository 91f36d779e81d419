import { Role } from '../../contract/auth.ts';
import { InvalidValue, WrongUsage } from '../../core/errors/index.ts';
import { isLoopback } from '../../core/net/endpoint.ts';
import type { OidcSettings, RoleOfGroup } from '../domain/single-sign-on.ts';

/** The settings in the operator's form. */
interface SettingsTexts extends Pick<OidcSettings, 'clientId' | 'clientSecret' | 'groupsClaim'> {
  readonly issuer: string;
  readonly scopes: string;
  readonly parameters: readonly string[];
  readonly roles: readonly string[];
  readonly organizationClaim: string | null;
  readonly tokenMaxAgeMs: number;
}

/** @throws InvalidValue or WrongUsage, which name the flag */
export function parseOidcSettings(
  { issuer, scopes, parameters, roles, ...others }: SettingsTexts,
  publicUrls: readonly URL[],
): OidcSettings {
  if (publicUrls.length === 0) {
    throw new WrongUsage('--oidc-issuer needs --public-url, the URL to which the issuer sends browsers back');
  }
  if (roles.length === 0) {
    throw new WrongUsage('--oidc-issuer needs --oidc-role, such as admin=net-admins; without a role no user logs in');
  }
  return {
    ...others,
    issuer: parseIssuer(issuer),
    scopes: scopes.split(/[\s,]+/).filter((scope) => scope !== '' && scope !== 'openid'),
    parameters: parameters.map((text) => parsePair(text, '--oidc-parameter')),
    roles: roles.map(parseRole),
  };
}

function parseIssuer(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && [url.username, url.password, url.search, url.hash].every((part) => part === '');
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
  if (url !== null && isPlain && isSafe) return url;
  const remedy = 'give it as the issuer states it, without /.well-known';
  throw new InvalidValue('--oidc-issuer', text, 'is not a URL of https', remedy);
}

function parseRole(text: string): RoleOfGroup {
  const [given, group] = parsePair(text, '--oidc-role');
  const role = Role.options.find((each) => each === given);
  if (role !== undefined) return { role, group };
  throw new InvalidValue('--oidc-role', text, `must begin with one of ${Role.options.join(', ')}`);
}

/** A value may contain `=`, as the names of groups in LDAP do. */
function parsePair(text: string, flag: string): [string, string] {
  const at = text.indexOf('=');
  if (at > 0 && at < text.length - 1) return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
  throw new InvalidValue(flag, text, 'has no "=" between two words', 'give it as NAME=VALUE');
}
