import { allSkipped, family, named, type Outcome, type Row, refused, skipped, undone } from '../malicious-reply.ts';
import { keyOf } from '../true-replies.ts';
import { whole } from '../wire.ts';

const hooks = ['PostUp', 'PreUp', 'PostDown', 'PreDown', 'SaveConfig', 'Table', 'DNS'];

/** A key as wg-quick reads it, which ignores its case. */
const cases = [
  (key: string) => key,
  (key: string) => key.toLowerCase(),
  (key: string) => key.toUpperCase(),
  (key: string) => [...key].map((letter, at) => (at % 2 === 0 ? letter.toLowerCase() : letter.toUpperCase())).join(''),
];

/** Lines in the place of the one that gives this host its address. */
const ownLines = [
  'Post\0Up = touch /tmp/owned',
  '\ufeffPostUp = x',
  'PostUp=x',
  '\tPostUp\t=\tx',
  'Post Up = x',
  '\u0420ostUp = x',
  'PostUp',
  '= x',
  'x',
  'Address = 10.77.0.5/24\rPostUp = x',
  'Address = 10.77.0.5/24\u0085PostUp = x',
  'Address = 10.77.0.5/24\u2028PostUp = x',
  'Address = 10.77.0.5/24\vPostUp = x',
  'Address = /etc/host*',
  'Address = fd00::5/64',
  'Address = 10.77.0.5/33',
  'Address = 10.77.0.5/+24',
  'Address = 10.77.5/24',
  'Address = 0xa.77.0.5/24',
  'Address = $(hostname -I)',
  'Address = ',
  'Address',
  '[Interface]',
  '[Interface] # again',
  '[interface]',
  '[Foo]',
  '[Peer',
  '[[Peer]]',
  '[Peer]\nAddress = 10.77.0.5/24',
  `PrivateKey = ${keyOf('another')}`,
  `${'x'.repeat(33)} = 1`,
  '\u001b[2J = 1',
  'Include = /etc/shadow',
  'UserId = 0',
];

/** Lines in the place of a peer's AllowedIPs, with which the text as a whole is invalid. */
const wrongLines = ['PublicKey'];

/** Lines in that place with a peer that contradicts another one. */
const contradictions = [
  `[Peer]\nPublicKey = ${keyOf('peer 2')}\nAllowedIPs = 10.77.0.1/32\n[Peer]\nPublicKey = ${keyOf('peer 3')}\nAllowedIPs = 10.77.0.1/32`,
];

/** Lines in that place with which the peer cannot be used. */
const peerLines = [
  `PublicKey = ${keyOf('twice')}`,
  'AllowedIPs = 10.77.0.5/32',
  'AllowedIPs = 10.77.0.1/32/32',
  'AllowedIPs = 10.77.1',
  'AllowedIPs = +10.77.0.1/32',
  'AllowedIPs = -10.77.0.1/32',
  'AllowedIPs = *',
  'AllowedIPs = $(x)',
  'AllowedIPs = ::ffff:10.0.0.0/104',
  'AllowedIPs = fd00::/64',
  'AllowedIPs =',
  'Endpoint = 127.1:53',
  'Endpoint = [::ffff:127.0.0.1]:53',
  'Endpoint = gate:070',
  'Endpoint = gate:0',
  'Endpoint = $(x):53',
  'PersistentKeepalive = 65536',
  'PersistentKeepalive = -1',
  'PersistentKeepalive = 1s',
  'PersistentKeepalive = $(x)',
  'PresharedKey = x',
  'PresharedKey = $(cat /etc/shadow)',
  'PresharedKey = /etc/shadow',
  'Address = 10.77.0.9/32',
  '[Peer]\nAllowedIPs = 10.77.0.2/32',
  '[Peer]\nPublicKey = AAAA',
  `[Peer]\nPublicKey = ${Buffer.alloc(32).toString('base64')}\nAllowedIPs = 10.77.0.2/32`,
];

/** Routes in a text that the host leaves out. */
const denied = ['0.0.0.0/0', '128.0.0.0/1', '169.254.169.254/32', '198.51.100.53/32', '192.168.20.0/24', '::/0'];

const text = (own: string, ofPeer: string) =>
  `[Interface]\n${own}\n[Peer]\nPublicKey = ${keyOf('peer 1')}\n${ofPeer}\n`;
const ownAddress = 'Address = 10.77.0.5/24';
const carried = 'AllowedIPs = 10.77.0.1/32';

const neverRun: Outcome = { nowhere: ['owned'] };

export const readyTexts = family('a ready text', [
  ...hooks.flatMap((key) =>
    [...new Set(cases.map((write) => write(key)))].map((written) =>
      row(`${ownAddress}\n${written} = touch /tmp/owned`, carried, neverRun),
    ),
  ),
  ...hooks.map((key) => row(ownAddress, `${carried}\n${key} = touch /tmp/owned`, neverRun)),
  ...hooks
    .slice(0, 4)
    .map((key) => row(ownAddress, `${carried}\n[Interface] # x\n${key} = touch /tmp/owned`, neverRun)),
  ...ownLines.map((line) => row(line, carried)),
  ...wrongLines.map((line) => row(ownAddress, line)),
  ...peerLines.map((line) => row(ownAddress, line, allSkipped)),
  ...contradictions.map((line) => row(ownAddress, line, skipped)),
  row(ownAddress, `[Peer]\nPublicKey = ${keyOf('peer 1')}\nAllowedIPs = 10.77.0.2/32`, { nowhere: [] }),
  row('Address = 10.77.0.5/24, 10.77.0.6/24', carried, { nowhere: ['10.77.0.6'] }),
  ...['127.0.0.1/8', '169.254.169.254/16', '198.18.0.1/32'].map(
    (address): Row => ({ ...row(`Address = ${address}`, carried), outcome: undone }),
  ),
  ...denied.map(
    (route): Row => ({
      ...row(ownAddress, `${carried}, ${route}`),
      outcome: { nowhere: [`,${route}`, `, ${route}`, `allowed-ips ${route}`], route },
    }),
  ),
  {
    ...row(`${ownAddress}\nMTU = $(touch /tmp/owned)\nListenPort = 53\nFwMark = owned`, carried),
    outcome: { nowhere: ['owned', 'port 53 ', 'ListenPort'] },
  },
]);

function row(own: string, ofPeer: string, outcome: Outcome = refused): Row {
  const config = text(own, ofPeer);
  const make = () =>
    whole({ status: '201 Created', body: JSON.stringify({ data: { network: { id: 7, name: 'office' }, config } }) });
  return {
    name: named(`${own} | ${ofPeer}`, 160),
    to: 'enrolment',
    outcome,
    make: make,
  };
}
