import { nameAuthorities } from './authority-file.ts';
import { type Certificate, instant } from './certificate.ts';
import { codeOf, isUnknownIssuer } from './failure-code.ts';
import { UnacceptedCertificate } from './with-chain.ts';

/** The server of a TLS connection, in words for messages, and the settings of its clients. */
export interface TlsServer {
  /** Such as `the control plane`. */
  readonly name: string;
  /** The client's machine, such as `this host`. */
  readonly client: string;
  /** The host that the certificate must name. */
  readonly host: string;
  readonly port: string;
  /** The flag that sets the server. */
  readonly flag: string;
  /** The remedy if the port serves plain http. */
  readonly plain: string;
  /** The only trusted CAs for the server. Null if the CAs of the client's machine are trusted. */
  findAuthorities?(): readonly Certificate[] | null;
  /** The remedy that makes the client's machine trust a certificate, in the imperative. */
  trust(certificate: string): string;
}

/** The problem, as a clause whose subject is the server, and the remedy. */
export interface TlsFailure {
  readonly problem: string;
  readonly remedy: string;
}

interface ObservedFailure {
  readonly code: string;
  readonly server: TlsServer;
  readonly chain: readonly Certificate[];
  readonly now: number;
}

type Describe = (observed: ObservedFailure) => TlsFailure;

/**
 * Describes a failed TLS handshake or certificate verification. All TLS clients use this table.
 * `now` is milliseconds since the epoch, by the clock that verified the certificates.
 */
export function describeTlsFailure(error: unknown, server: TlsServer, now: number): TlsFailure {
  const code = codeOf(error);
  const chain = error instanceof UnacceptedCertificate ? error.chain : [];
  const authorities = server.findAuthorities?.() ?? null;
  if (authorities !== null && isUnknownIssuer(code))
    return describeOtherAuthority({ code, server, chain, now }, authorities);
  const describe = certificateFailures[code] ?? handshakeFailures.find(([pattern]) => pattern.test(code))?.[1];
  return (describe ?? describeOther)({ code, server, chain, now });
}

/** Describes a connection that was closed during the TLS handshake. A retry may succeed. */
export function describeClosedHandshake({ name, host }: TlsServer): TlsFailure {
  return {
    problem: 'the connection was closed during the TLS handshake (ECONNRESET)',
    remedy: `check that the port serves https; a firewall may refuse connections to ${host}, or ${name} may be starting`,
  };
}

const describeExpired: Describe = ({ code, server, chain, now }) => {
  const at = chain.findIndex(({ validTo }) => validTo < now);
  const expired = chain[at];
  const clock = `if the clock of ${server.client} is wrong: timedatectl set-ntp true`;
  if (expired === undefined)
    return {
      problem: `its TLS certificate expired (${code})`,
      remedy: `renew the certificate of ${server.name}; ${clock}`,
    };
  const clocks = `expired on ${instant(expired.validTo)}, and the clock of ${server.client} is at ${instant(now)}`;
  if (at === 0)
    return {
      problem: `its TLS certificate ${clocks} (${code})`,
      remedy: `renew the certificate of ${server.name}; ${clock}`,
    };
  const isOwn = server
    .findAuthorities?.()
    ?.some(({ subject, validTo }) => subject === expired.subject && validTo < now);
  if (isOwn === true) {
    return {
      problem: `the CA "${expired.subject}" of --ca-file ${clocks} (${code})`,
      remedy: `${server.trust('the certificate of the CA that replaces it')}; ${clock}`,
    };
  }
  return {
    problem: `the certificate of its issuer "${expired.subject}" ${clocks} (${code})`,
    remedy: `replace that issuer in the chain that ${server.name} sends; ${clock}`,
  };
};

const describeNotYetValid: Describe = ({ code, server, chain, now }) => {
  const pending = chain.find(({ validFrom }) => validFrom > now);
  const since =
    pending === undefined
      ? 'its TLS certificate is not yet valid'
      : `its TLS certificate is valid from ${instant(pending.validFrom)}, and the clock of ${server.client} is at ${instant(now)}`;
  return {
    problem: `${since} (${code})`,
    remedy: `the clock of ${server.client} may be wrong: timedatectl set-ntp true; if it is right, replace the certificate of ${server.name}`,
  };
};

const describeOtherName: Describe = ({ code, server, chain }) => {
  const names = chain[0]?.names ?? [];
  const is = names.length === 0 ? 'is not' : `is for ${list(names)}, not`;
  return {
    problem: `its TLS certificate ${is} for ${server.host} (${code})`,
    remedy: `give ${server.flag} a name of that certificate, or ${server.name} a certificate for ${server.host}`,
  };
};

/** The issuer is not in `--ca-file`. With that file, the CAs of the machine do not count. */
function describeOtherAuthority(
  { code, server, chain }: ObservedFailure,
  authorities: readonly Certificate[],
): TlsFailure {
  const issuer = chain.at(-1)?.issuer;
  const named = issuer === undefined ? 'another CA' : `"${issuer}"`;
  const trusted = nameAuthorities(authorities);
  return {
    problem: `${named} issued its TLS certificate, and ${server.client} accepts only ${trusted}, from --ca-file (${code})`,
    remedy: `if ${server.name} has another CA now, ${server.trust(`the certificate of ${issuer === undefined ? 'that CA' : named}`)}; "--ca-file none" accepts the CAs of the machine instead; otherwise another server answers in place of ${server.name}`,
  };
}

const describeSelfSigned: Describe = ({ code, server }) => ({
  problem: `its TLS certificate is self-signed, and not trusted on ${server.client} (${code})`,
  remedy: `get the certificate from the operator of ${server.name}; ${server.trust('it')}`,
});

const describeUnknownIssuer: Describe = ({ code, server, chain }) => {
  const issuer = chain.at(-1)?.issuer;
  const named = issuer === undefined ? 'its issuer' : `"${issuer}"`;
  const trust = server.trust(`the certificate of ${named}`);
  if (issuer !== undefined && inspectors.test(issuer)) {
    return {
      problem: `a proxy that inspects TLS is in between: ${named} issued the certificate, and is not trusted on ${server.client} (${code})`,
      remedy: `let the operator of that proxy exempt ${server.host}, or ${trust}`,
    };
  }
  return {
    problem: `the issuer of its TLS certificate${issuer === undefined ? '' : `, ${named},`} is not trusted on ${server.client} (${code})`,
    remedy: `if it is your own CA, or that of a proxy of your company that inspects TLS, ${trust}; otherwise another server answers in place of ${server.name}`,
  };
};

/** Only the leaf was sent. Public CAs issue from intermediates, whose URL the leaf contains. */
const describeLeafAlone: Describe = (observed) => {
  const { code, server, chain } = observed;
  const [leaf] = chain;
  if (leaf === undefined || inspectors.test(leaf.issuer)) return describeUnknownIssuer(observed);
  const issuer = `"${leaf.issuer}"`;
  const send = `${server.name} must send the certificate of ${issuer} after its own (often in fullchain.pem)`;
  if (leaf.namesIssuerUrl) {
    return {
      problem: `it sends its TLS certificate without the intermediate certificate of ${issuer}, which issued it (${code})`,
      remedy: `${send}; if ${issuer} is a CA of your own, ${server.trust('its certificate')}`,
    };
  }
  return {
    problem: `the certificate of ${issuer}, which issued its TLS certificate, is neither sent nor trusted on ${server.client} (${code})`,
    remedy: `if ${issuer} is a CA of your own, ${server.trust('its certificate')}; if another CA issued ${issuer}, ${send}`,
  };
};

const describeRevoked: Describe = ({ code, server, chain }) => ({
  problem: `its TLS certificate was revoked${chain[0] === undefined ? '' : ` by "${chain[0].issuer}"`} (${code})`,
  remedy: `replace the certificate and the private key of ${server.name}`,
});

const describePurpose: Describe = ({ code, server, chain }) => {
  const [leaf, ...issuers] = chain;
  const noAuthority = issuers.find(({ isAuthority }) => !isAuthority);
  if (leaf?.isForServers === false) {
    return {
      problem: `its TLS certificate is not for servers: its extended key usage lacks serverAuth (${code})`,
      remedy: `issue the certificate of ${server.name} again with serverAuth`,
    };
  }
  return {
    problem: `the issuer of its TLS certificate${noAuthority === undefined ? '' : `, "${noAuthority.subject}",`} may not issue certificates for servers (${code})`,
    remedy: `let a CA issue the certificate of ${server.name}`,
  };
};

function weak(what: string, instead: string): Describe {
  return ({ code, server }) => ({
    problem: `${what} (${code})`,
    remedy: `${instead}, and give ${server.name} the new certificate`,
  });
}

const strongKey = 'with an RSA key of at least 2048 bits or an EC key';

/** By OpenSSL's code (openssl-verification-options(1)), and by Node's code for names. */
const certificateFailures: Readonly<Record<string, Describe>> = {
  CERT_HAS_EXPIRED: describeExpired,
  CERT_NOT_YET_VALID: describeNotYetValid,
  ERR_TLS_CERT_ALTNAME_INVALID: describeOtherName,
  HOSTNAME_MISMATCH: describeOtherName,
  DEPTH_ZERO_SELF_SIGNED_CERT: describeSelfSigned,
  SELF_SIGNED_CERT_IN_CHAIN: describeUnknownIssuer,
  UNABLE_TO_GET_ISSUER_CERT: describeUnknownIssuer,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: describeUnknownIssuer,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: describeLeafAlone,
  CERT_UNTRUSTED: describeUnknownIssuer,
  CERT_REVOKED: describeRevoked,
  EE_KEY_TOO_SMALL: weak('the key of its TLS certificate is too weak', `issue one ${strongKey}`),
  CA_KEY_TOO_SMALL: weak('the key of a CA of its TLS certificate is too weak', `use a CA ${strongKey}`),
  CA_MD_TOO_WEAK: weak(
    'its TLS certificate, or one of its issuers, is signed with a hash that is too weak, such as SHA-1',
    'issue it with SHA-256',
  ),
  INVALID_PURPOSE: describePurpose,
  INVALID_CA: describePurpose,
  PATH_LENGTH_EXCEEDED: describePurpose,
};

const describePlain: Describe = ({ code, server }) => ({
  problem: `the TLS handshake failed (${code}): https was tried, and the port may serve plain http`,
  remedy: server.plain,
});

/** By a part of the error code: a server's alert (RFC 8446, 6.2), or an error of OpenSSL. */
const handshakeFailures: readonly (readonly [RegExp, Describe])[] = [
  [/^EPROTO$|WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|UNKNOWN_PROTOCOL/, describePlain],
  [
    /ALERT_PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/,
    ({ code, server }) => ({
      problem: `it does not offer TLS 1.2 or newer (${code})`,
      remedy: `turn on TLS 1.2 or newer in ${server.name}, or in the proxy in front of it`,
    }),
  ],
  [
    /UNRECOGNIZED_NAME/,
    ({ code, server }) => ({
      problem: `it has no TLS certificate for ${server.host} (${code})`,
      remedy: `check the name in ${server.flag}, and the names that ${server.name} or the proxy in front of it serves`,
    }),
  ],
  [
    /ALERT_(CERTIFICATE_REQUIRED|BAD_CERTIFICATE)/,
    ({ code, server }) => ({
      problem: `it requires a client certificate, and cpn sends none (${code})`,
      remedy: `turn off client certificates in ${server.name}, or in the proxy in front of it`,
    }),
  ],
  [
    /ALERT_HANDSHAKE_FAILURE/,
    ({ code, server }) => ({
      problem: `it refused the TLS handshake (${code})`,
      remedy: `see the log of ${server.name}, or of the proxy in front of it: no certificate for ${server.host}, no common cipher, or a client certificate is required`,
    }),
  ],
];

const describeOther: Describe = ({ code, server }) => {
  const problem = /^ERR_(SSL|OSSL)_/.test(code) ? 'the TLS handshake failed' : 'its TLS certificate was not accepted';
  const { host, port } = server;
  const command = `openssl s_client -connect ${host.includes(':') ? `[${host}]` : host}:${port}`;
  return { problem: `${problem} (${code})`, remedy: `see what it sends: ${command}` };
};

/** Issuers of well-known products that inspect TLS. */
const inspectors =
  /zscaler|netskope|forti(net|gate)|palo ?alto|blue ?coat|cisco umbrella|opendns|sophos|kaspersky|eset ssl|avast|bitdefender|mitmproxy|charles proxy|watchguard|check ?point|forcepoint|skyhigh|mcafee|trend ?micro|cato networks|squid|untangle|barracuda|smoothwall|lightspeed|securly/i;

function list(names: readonly string[]): string {
  const shown = names.slice(0, 3).join(', ');
  return names.length > 3 ? `${shown} and ${names.length - 3} other ${names.length === 4 ? 'name' : 'names'}` : shown;
}
