import { WrongUsage } from '../../core/errors/index.ts';
import type { Flags } from '../input/flags.ts';
import { type Input, parseChoice } from '../input/input.ts';
import { readPrivateFile } from '../input/secrets.ts';

export const oidcFlags: Flags = {
  'oidc-issuer': { kind: 'text', value: 'URL', summary: 'let users log in at this issuer of OpenID Connect' },
  'oidc-client-id': { kind: 'text', value: 'ID', summary: 'id of this control plane at the issuer' },
  'oidc-client-secret-file': {
    kind: 'text',
    value: 'PATH',
    summary: 'file that holds only the client secret; must not be readable by others',
  },
  'oidc-role': {
    kind: 'list',
    value: 'ROLE=GROUP',
    summary: 'role of the members of a group; viewer=* for every user of the issuer; the highest one applies',
  },
  'oidc-groups-claim': {
    kind: 'text',
    value: 'CLAIM',
    summary: 'claim that has the groups, or a path such as realm_access.roles',
    byDefault: 'groups',
  },
  'oidc-organization-claim': {
    kind: 'text',
    value: 'CLAIM',
    summary: 'claim that has the name of the organization, for several organizations in one database',
  },
  'oidc-scopes': {
    kind: 'text',
    value: 'SCOPE,SCOPE',
    summary: 'scopes of a login, in addition to openid',
    byDefault: 'profile,email,offline_access',
  },
  'oidc-parameter': {
    kind: 'list',
    value: 'NAME=VALUE',
    summary: 'added to the request for a login, such as prompt=consent or access_type=offline',
  },
  'oidc-token-max-age': {
    kind: 'text',
    value: 'DURATION',
    summary: 'how long personal tokens work after the last login of their user at the issuer',
    byDefault: '30d',
  },
  'password-login': {
    kind: 'text',
    value: 'on|off',
    summary: 'off: only an owner of "reset-owner" logs in with a password, on the host of the control plane',
    byDefault: 'on',
    choices: ['on', 'off'],
  },
};

/** Reads {@link oidcFlags}. `oidc` is null without an issuer. */
export async function readOidc(input: Input) {
  const allowsPasswords =
    parseChoice(input.nameOf('password-login'), input.text('password-login') ?? 'on', ['on', 'off']) === 'on';
  const issuer = input.text('oidc-issuer');
  if (issuer === undefined) {
    const lone = Object.keys(oidcFlags).find((flag) => flag.startsWith('oidc-') && input.has(flag));
    if (lone !== undefined) throw new WrongUsage(`${input.nameOf(lone)} is for an issuer; give --oidc-issuer too`);
    if (!allowsPasswords) throw new WrongUsage('--password-login off leaves no way to log in; give --oidc-issuer too');
    return { oidc: null, allowsPasswords };
  }
  const maxAgeS = input.period('oidc-token-max-age', 3600, 3650 * 86_400) ?? 30 * 86_400;
  const oidc = {
    issuer,
    clientId: input.need('oidc-client-id'),
    clientSecret: await readPrivateFile(input.need('oidc-client-secret-file'), 'the client secret'),
    scopes: input.text('oidc-scopes') ?? 'profile,email,offline_access',
    parameters: input.each('oidc-parameter'),
    roles: input.each('oidc-role'),
    groupsClaim: input.text('oidc-groups-claim') ?? 'groups',
    organizationClaim: input.text('oidc-organization-claim') ?? null,
    tokenMaxAgeMs: maxAgeS * 1000,
  };
  return { oidc, allowsPasswords };
}
