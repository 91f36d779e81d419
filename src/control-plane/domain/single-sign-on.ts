import type { Role } from '../../contract/auth.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import type { Seal } from './seal.ts';

/** What an issuer states of a user. */
export type Claims = Readonly<Record<string, unknown>>;

/** An issuer with its settings, and the encryption of its refresh tokens. */
export interface SingleSignOn {
  readonly settings: OidcSettings;
  readonly issuer: Issuer;
  readonly seal: Seal;
}

/** How users log in at an issuer of OpenID Connect. */
export interface OidcSettings {
  readonly issuer: URL;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** What is asked of the issuer, without `openid`. */
  readonly scopes: readonly string[];
  /** Added to the request for a login, such as `prompt=consent`. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
  readonly roles: readonly RoleOfGroup[];
  /** The claim that has the groups: a name, or a path such as `realm_access.roles`. */
  readonly groupsClaim: string;
  /** The claim that has the name of the organization; null if there is only one organization. */
  readonly organizationClaim: string | null;
  /** How long the personal tokens of a user are valid after its last login. */
  readonly tokenMaxAgeMs: number;
}

/** The role of the members of a group; of every user of the issuer if the group is `*`. */
export interface RoleOfGroup {
  readonly role: Role;
  readonly group: string;
}

/** The random values of a login. Each is used once. */
export interface LoginValues {
  readonly state: string;
  readonly nonce: string;
  /** For PKCE. */
  readonly verifier: string;
}

/** A login that the issuer confirmed, or confirms again. */
export interface Grant {
  readonly claims: Claims;
  /** Null if the issuer gives none. */
  readonly refreshToken: Secret | null;
  /** The id of the session at the issuer; null if it states none. */
  readonly session: string | null;
  /** False if the claims are those of the userinfo endpoint alone. */
  readonly hasIdToken: boolean;
}

/** A logout at the issuer: of a session, or of all sessions of a user if `session` is null. */
export interface Logout {
  readonly subject: string | null;
  readonly session: string | null;
  readonly at: Date;
}

/** An issuer of OpenID Connect. Methods throw IssuerRefused, or Unavailable without an answer. */
export interface Issuer {
  /** Returns the URL at which the user logs in. */
  authorize(redirectUri: string, values: LoginValues): Promise<URL>;
  /** Redeems the code in the URL to which the issuer sent the browser. */
  redeem(callback: URL, values: LoginValues): Promise<Grant>;
  /**
   * @param keep stores the new refresh token, before anything else can fail: the issuer may accept
   * the former one no more
   * @throws IssuerRefused with `isEnd` if the issuer ended the login
   */
  refresh(token: Secret, subject: string, keep: (next: Secret) => Promise<void>): Promise<Grant>;
  /** Verifies a logout token (OpenID Connect Back-Channel Logout 1.0, 2.6). */
  readLogout(token: string): Promise<Logout>;
}
