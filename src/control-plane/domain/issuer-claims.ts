import { Role } from '../../contract/auth.ts';
import { email as Email } from '../../contract/text.ts';
import { IssuerRefused } from '../errors.ts';
import type { Claims, OidcSettings } from './single-sign-on.ts';

/** A user of the issuer. Only the subject identifies it: addresses change, and may be reused. */
export interface Person {
  readonly subject: string;
  /** In lower case; null without a valid one. */
  readonly email: string | null;
  /** The highest role of its groups; null if no group has one. */
  readonly role: Role | null;
  /** False if the issuer states no groups at all, as if it has none to state or hides them. */
  readonly statesGroups: boolean;
  /** The name of its organization; null without one, or if the settings name no claim for it. */
  readonly organization: string | null;
}

/** @throws IssuerRefused for claims without a subject, or with groups that are elsewhere */
export function readPerson(claims: Claims, settings: OidcSettings): Person {
  const { sub: subject, email: given } = claims;
  if (typeof subject !== 'string' || subject === '' || subject.length > mostOfSubject || subject.includes('\0')) {
    throw new IssuerRefused(`the issuer gave a subject that is empty or longer than ${mostOfSubject} characters`);
  }
  const { groupsClaim, organizationClaim } = settings;
  // Microsoft Entra names another place for the groups of a user that has many.
  if (isElsewhere(claims, groupsClaim)) {
    throw new IssuerRefused(
      `the issuer does not list the groups of this user, which has too many; let it give only the groups of this application in the claim "${groupsClaim}"`,
    );
  }
  const stated = readClaim(claims, groupsClaim);
  return {
    subject,
    email: Email.max(254).safeParse(given).data?.toLowerCase() ?? null,
    role: findRole(readGroups(claims, groupsClaim), settings),
    statesGroups: stated !== undefined && stated !== null,
    organization: readOrganization(claims, organizationClaim),
  };
}

function isElsewhere(claims: Claims, claim: string): boolean {
  const { _claim_names: names } = claims;
  return typeof names === 'object' && names !== null && Object.hasOwn(names, claim) && !Object.hasOwn(claims, claim);
}

/** The specification's limit (OpenID Connect Core 1.0, 2). */
const mostOfSubject = 255;
const mostOfOrganization = 255;

/** The groups of a user: a list of texts, or one text. */
function readGroups(claims: Claims, claim: string): string[] {
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
  const name = claim === null ? null : readClaim(claims, claim);
  const isName = typeof name === 'string' && name !== '' && name.length <= mostOfOrganization && !name.includes('\0');
  return isName ? name : null;
}
