import { Role } from '../../contract/auth.ts';
import { email as Email } from '../../contract/text.ts';
import { IssuerRefused } from '../errors.ts';
import type { Claims, OidcSettings } from './single-sign-on.ts';

/** A user of the issuer. Only the subject identifies it: addresses change, and may be reused. */
export interface Person {
  readonly subject: string;
  /** In lower case. */
  readonly email: string;
  /** The highest role of its groups; null if no group has one. */
  readonly role: Role | null;
  /** The name of its organization; null if the settings name no claim for it. */
  readonly organization: string | null;
}

/** @throws IssuerRefused for claims without a subject, an e-mail address or an organization */
export function readPerson(claims: Claims, settings: OidcSettings): Person {
  const { sub: subject, email: given } = claims;
  if (typeof subject !== 'string' || subject === '' || subject.length > mostOfSubject) {
    throw new IssuerRefused(`the issuer gave a subject that is empty or longer than ${mostOfSubject} characters`);
  }
  const email = Email.max(254).safeParse(given).data;
  if (email === undefined) {
    throw new IssuerRefused(
      'the issuer gave no valid e-mail address; let it add the claim "email" to the scopes of --oidc-scopes',
    );
  }
  return {
    subject,
    email: email.toLowerCase(),
    role: findRole(readGroups(claims, settings.groupsClaim), settings),
    organization: readOrganization(claims, settings.organizationClaim),
  };
}

/** The specification's limit (OpenID Connect Core 1.0, 2). */
const mostOfSubject = 255;
const mostOfOrganization = 255;

/** The groups of a user: a list of texts, or one text. */
export function readGroups(claims: Claims, claim: string): string[] {
  return [readClaim(claims, claim)].flat().filter((group) => typeof group === 'string');
}

/** Finds a claim by its whole name, which may contain dots, or else by the path of its parts. */
function readClaim(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name.split('.').reduce<unknown>((value, part) => {
    const isObject = typeof value === 'object' && value !== null && Object.hasOwn(value, part);
    return isObject ? (value as Claims)[part] : undefined;
  }, claims);
}

function findRole(groups: readonly string[], { roles }: OidcSettings): Role | null {
  const own = roles.filter(({ group }) => group === '*' || groups.includes(group)).map(({ role }) => role);
  return Role.options.find((role) => own.includes(role)) ?? null;
}

function readOrganization(claims: Claims, claim: string | null): string | null {
  if (claim === null) return null;
  const name = readClaim(claims, claim);
  if (typeof name === 'string' && name !== '' && name.length <= mostOfOrganization && !name.includes('\0')) return name;
  throw new IssuerRefused(
    `the issuer gave no organization in the claim "${claim}", which --oidc-organization-claim names`,
  );
}
