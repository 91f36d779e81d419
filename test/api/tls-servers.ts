import { createServer as createPlain } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { createServer as createTcp, type Server } from 'node:net';
import { type Issued, ofAuthority, ofServer, openAuthority } from './certificate-authority.ts';
import { listen, trust } from './server.ts';

/** A server to which no client of TLS gets through, and what its clients read of it. */
export interface FailingServer {
  readonly what: string;
  readonly port: number;
  /** The problem, with the code of Node or OpenSSL. */
  readonly problem: RegExp;
  /** What the remedy has in it, for each client. */
  readonly remedy: RegExp;
  /** What the remedy of a host has in it too. */
  readonly hostRemedy?: RegExp;
}

const today = new Date().toISOString().slice(0, 10);
const clockOf = `the clock of this (host|machine) is at ${today} ..:.. UTC`;
const day = String.raw`20\d\d-\d\d-\d\d \d\d:\d\d UTC`;
const toTrust = /write .* to a file in PEM.* --ca-file|add .* to the CAs of this machine/;
/** OpenSSL refuses keys and hashes that are too weak on the side of the server, too. */
const anyStrength = { ciphers: 'DEFAULT@SECLEVEL=0' };

/** Starts a server for each reason to refuse one. They end with the test. @returns and how many requests came through */
export async function startFailingServers() {
  const { issue } = openAuthority();
  const authority = (name: string, more: Partial<Parameters<typeof issue>[0]> = {}) =>
    issue({ name, extensions: ofAuthority, ...more });
  const root = authority('Trusted Root');
  const intermediate = authority('Trusted Intermediate', { issuer: root });
  const outdated = authority('Outdated Intermediate', { issuer: root, days: [-9, -2] });
  const sha1 = authority('Old Hash', { issuer: root, digest: 'sha1' });
  const weakRoot = authority('Weak Root', { keyType: 'rsa:1024' });
  const noAuthority = issue({ name: 'No Authority', issuer: root });
  const own = authority('Office Root');
  const ownIntermediate = authority('Office Intermediate', { issuer: own });
  const inspecting = authority('Zscaler Root CA');
  trust(root.cert, weakRoot.cert);
  const leaf = (more: Partial<Parameters<typeof issue>[0]> = {}) =>
    issue({ name: 'localhost', issuer: intermediate, ...more });
  const withUrl = [...ofServer, 'authorityInfoAccess=caIssuers;URI:http://ca.example.net/intermediate.crt'];

  let requests = 0;
  const servers: FailingServer[] = [];
  const add = async (server: Server, failing: Omit<FailingServer, 'port'>) => {
    // What a client does to a connection is no error of the test.
    server.on('tlsClientError', () => {});
    const { port } = await listen(server);
    servers.push({ ...failing, port });
  };
  const serveHttps = (certificates: readonly Issued[], options: object = {}) =>
    createHttps(
      {
        cert: certificates.map(({ cert }) => cert).join(''),
        key: certificates[0]?.key,
        ...anyStrength,
        ...options,
      },
      (_, response) => {
        requests += 1;
        response.end();
      },
    );
  const refuse = (what: string, certificates: readonly Issued[], problem: RegExp, remedy: RegExp) =>
    add(serveHttps(certificates), { what, problem, remedy });

  await refuse(
    'an expired certificate',
    [leaf({ days: [-9, -2] }), intermediate],
    new RegExp(`its TLS certificate expired on ${day}, and ${clockOf} \\(CERT_HAS_EXPIRED\\)`),
    /renew the certificate of the (control plane|receiver); if the clock .* is wrong: timedatectl set-ntp true/,
  );
  await refuse(
    'an expired intermediate certificate',
    [leaf({ issuer: outdated }), outdated],
    new RegExp(`the certificate of its issuer "Outdated Intermediate" expired on ${day}, and ${clockOf}`),
    /replace that issuer in the chain that the (control plane|receiver) sends/,
  );
  await refuse(
    'a certificate that is not yet valid',
    [leaf({ days: [5, 9] }), intermediate],
    new RegExp(`its TLS certificate is valid from ${day}, and ${clockOf} \\(CERT_NOT_YET_VALID\\)`),
    /the clock of this (host|machine) may be wrong: timedatectl set-ntp true/,
  );
  await refuse(
    'a certificate of other names',
    [
      leaf({ extensions: ['subjectAltName=DNS:a.example.net,DNS:*.example.com,IP:10.0.0.1,DNS:c,DNS:d'] }),
      intermediate,
    ],
    /its TLS certificate is for a\.example\.net, \*\.example\.com, 10\.0\.0\.1 and 2 other names, not for localhost \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
    /give (--api|--webhook) a name of that certificate, or the (control plane|receiver) a certificate for localhost/,
  );
  await refuse(
    'a self-signed certificate',
    [issue({ name: 'localhost' })],
    /its TLS certificate is self-signed, and not trusted on this (host|machine) \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
    toTrust,
  );
  await refuse(
    'an issuer of its own, with its root',
    [leaf({ issuer: ownIntermediate }), ownIntermediate, own],
    /the issuer of its TLS certificate, "Office Root", is not trusted on this (host|machine) \(SELF_SIGNED_CERT_IN_CHAIN\)/,
    /your own CA, or that of a proxy of your company .*"Office Root".* (--ca-file|CAs of this machine).* otherwise another server answers/,
  );
  await refuse(
    'an issuer of its own, without its root',
    [leaf({ issuer: ownIntermediate }), ownIntermediate],
    /the issuer of its TLS certificate, "Office Root", is not trusted .*\(UNABLE_TO_GET_ISSUER_CERT_LOCALLY\)/,
    toTrust,
  );
  await refuse(
    'no intermediate certificate, of a CA that names its URL',
    [leaf({ extensions: withUrl })],
    /it sends its TLS certificate without the intermediate certificate of "Trusted Intermediate", .*\(UNABLE_TO_VERIFY_LEAF_SIGNATURE\)/,
    /^the (control plane|receiver) must send the certificate of "Trusted Intermediate" after its own/,
  );
  await refuse(
    'no intermediate certificate, or an unknown root',
    [leaf({ issuer: own })],
    /the certificate of "Office Root", which issued its TLS certificate, is neither sent nor trusted/,
    /^if "Office Root" is a CA of your own, (write|add) .*; if another CA issued "Office Root", the .* must send/,
  );
  await refuse(
    'the certificate of a proxy that inspects TLS',
    [leaf({ issuer: inspecting })],
    /a proxy that inspects TLS is in between: "Zscaler Root CA" issued the certificate/,
    /exempt localhost, or (write|add) the certificate of "Zscaler Root CA" to (a file .*--ca-file|the CAs)/,
  );
  await refuse(
    'a weak key',
    [leaf({ keyType: 'rsa:1024' }), intermediate],
    /the key of its TLS certificate is too weak \(EE_KEY_TOO_SMALL\)/,
    /issue one with an RSA key of at least 2048 bits/,
  );
  await refuse(
    'a CA with a weak key',
    [leaf({ issuer: weakRoot })],
    /the key of a CA of its TLS certificate is too weak \(CA_KEY_TOO_SMALL\)/,
    /use a CA with an RSA key of at least 2048 bits/,
  );
  await refuse(
    'a hash that is too weak',
    [leaf({ issuer: sha1 }), sha1],
    /is signed with a hash that is too weak, such as SHA-1 \(CA_MD_TOO_WEAK\)/,
    /issue it with SHA-256/,
  );
  await refuse(
    'a certificate of a client',
    [leaf({ extensions: [...ofServer, 'extendedKeyUsage=clientAuth'] }), intermediate],
    /its TLS certificate is not for servers: .* lacks serverAuth \(INVALID_PURPOSE\)/,
    /issue the certificate of the (control plane|receiver) again with serverAuth/,
  );
  await refuse(
    'an issuer that is no CA',
    [leaf({ issuer: noAuthority }), noAuthority],
    /the issuer of its TLS certificate, "No Authority", may not issue certificates for servers \(INVALID_PURPOSE\)/,
    /let a CA issue the certificate/,
  );

  const good = [leaf(), intermediate];
  await add(createPlain(), {
    what: 'plain http on the port',
    problem: /the TLS handshake failed \(\S+\): https was tried, and the port may serve plain http/,
    remedy: /check the port/,
    hostRemedy: /set --api to an http:\/\/ URL/,
  });
  await add(serveHttps(good, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1' }), {
    what: 'TLS 1.1 alone',
    problem: /it does not offer TLS 1\.2 or newer \(\S+_PROTOCOL_VERSION\)/,
    remedy: /turn on TLS 1\.2 or newer/,
  });
  await add(serveHttps([], anyStrength), {
    what: 'no certificate at all',
    problem: /it refused the TLS handshake \(\S+_ALERT_HANDSHAKE_FAILURE\)/,
    remedy: /see the log of the (control plane|receiver).*: no certificate for localhost, no common cipher/,
  });
  const closing = createTcp((socket) => {
    socket.on('error', () => {}).once('data', () => socket.end());
  });
  await add(closing, {
    what: 'a connection that ends in the handshake',
    problem: /the connection was closed during the TLS handshake/,
    remedy: /check that the port serves https; a firewall may refuse connections to localhost/,
  });
  return { servers, requests: () => requests };
}
