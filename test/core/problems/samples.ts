import type { FactsOf, ProblemCode } from '../../../src/core/problems/problem.ts';

const link = { interface: 'cpn0' };
const route = '192.168.50.0/24';
const at = '2030-01-01T00:00:00.000Z';
const service = 'https://cp.example';
const network = 'office';
const lan = { ...link, route, is_withdrawn: true };
const own = { ...link, network: 7, peer: 1, expires_at: at };

/** Facts for each code of the catalogue. */
export const samples: { readonly [Code in ProblemCode]: FactsOf<Code> } = {
  'state-unreadable': { ...link, error: 'the file is damaged' },
  'host-unread': { ...link, unread: 'ip failed' },
  'taken-down': link,
  'network-deleted': { ...link, network, service, received_at: at, resumes: true },
  'config-left': { ...link, path: '/etc/wireguard/cpn0.conf' },
  'interface-missing': { ...link, port: 51820, holder: 'cpn1', holder_network: 'other' },
  'peer-unlisted': { ...link, service, network, peer: 1, has_other_key: true },
  drift: { ...link, differences: 2 },
  'repair-postponed': { ...link, note: 'mtu was repaired 5 times in ten minutes, and further repairs are delayed' },
  'port-mismatch': { ...link, endpoint: '203.0.113.1:51820', endpoint_port: 51820, listen_port: 49561 },
  'awaiting-approval': { ...link, since: at, network: 1, peer: 4, fingerprint: 'd4f1 9a3b' },
  'peer-expired': own,
  'expires-soon': { ...own, days: 3 },
  'login-expired': { ...link, expires_at: at, url: service },
  'login-expires-soon': { ...link, expires_at: at, url: service },
  'identity-cloned': { ...link, since: at },
  'map-expired': { ...link, confirmed_at: at },
  'map-aging': { ...link, confirmed_at: at, ends_at: at },
  'map-rolled-back': { ...link, network, revision: '"7"' },
  'sync-refused': { ...link, refused: 'gone' },
  'no-access': { ...link, service, network, has_id: true },
  'replies-early': link,
  'deltas-refused': link,
  drained: link,
  'key-held': { ...link, devices: ['phone', 'tablet'] },
  'key-changing': { ...link, phase: 'announcing' },
  'rules-not-loaded': { ...link, error: 'nft -f - exited with 1', is_connector: true, is_closed: false },
  'address-open': { ...link, address: '10.77.0.1', is_plain: false },
  'access-rules-unread': { ...link, rules: ['web'] },
  'access-rules-excessive': link,
  'access-rules-ignored': link,
  'session-kept': { ...link, from: '203.0.113.9', to: '10.77.0.1', address: '10.77.0.1' },
  'hosts-not-updated': { ...link, problem: '/etc/hosts is not a regular file' },
  'domain-refused': { ...link, domain: 'corp.example', reason: 'the interface tun0 has it' },
  'domain-failing': { ...link, domain: 'corp.example', servers: ['192.168.50.53'], failure: 'REFUSED' },
  'domain-silent': { ...link, domain: 'corp.example', servers: ['192.168.50.53'] },
  'names-port-taken': { ...link, address: '10.77.0.2', port: 553 },
  'dns-file-left': {
    ...{ ...link, path: '/etc/dnsmasq.d/cpn-cpn0.conf', program: 'dnsmasq', is_there: false, is_down: true },
    reason: '/etc/dnsmasq.conf changed after dnsmasq started; restart it: systemctl restart dnsmasq',
  },
  'dns-ignored': { ...link, service, servers: ['10.77.0.53'] },
  'config-remark': { ...link, service, remark: 'PostUp is not used' },
  'pin-mismatch': {
    ...{ ...link, peer: 2, name: 'edge-1', address: '10.77.0.2', known_key: 'A', claimed_key: 'B' },
    ...{ difference: 'key B instead of A', pin: 'strict' },
  },
  'secret-mismatch': { ...link, difference: 'missing_there', peers: ['edge-1'] },
  'peer-hidden': { ...link, peer: 'edge-1', address: '10.77.0.2', other: 'cpn1' },
  'peer-silent': { ...link, peer: 'edge-1', address: '10.77.0.2' },
  'peer-relayed': { ...link, peer: 'web', via: 'edge-1' },
  'connector-alone': { ...link, connector: 'edge-1', peers: ['phone'] },
  'peer-alternating': { ...link, peer: 'web', endpoints: ['203.0.113.1:1', '203.0.113.2:1'] },
  'peer-skipped': { ...link, peer: 3, name: 'bad', address: '10.77.0.3', reason: 'its key is not valid' },
  'peers-skipped': { ...link, more: 4 },
  'endpoint-unused': { ...link, peer: 'web', reason: 'it lies within a route' },
  'route-missing': { ...link, route, reason: null },
  'route-bypassed': { ...link, route, part: '192.168.50.0/25', by: 'eth0', is_range: false },
  'route-foreign': {
    ...{ ...link, route: '10.9.0.0/16', table: '77', protocol: 'boot', problem: 'it is a default route' },
    command: 'ip route del 10.9.0.0/16 dev cpn0',
  },
  'tunnel-bypassed': { ...link, prefix: '0.0.0.0/1', problem: 'it takes public addresses from the full tunnel' },
  'subnet-inside': { ...link, subnet: '10.77.0.128/25', on: 'wlan0' },
  'lan-silent': { ...lan, targets: ['192.168.50.20:80'] },
  'lan-unreachable': { ...lan, reason: 'eth1 is down' },
  'probe-untried': { ...link, target: 'nas.example', why: 'elsewhere', error: '' },
  'map-unused': { ...link, network: 'office', route: '10.201.1.0/24', local: '192.168.1.0/24', isSwapped: false },
  'packets-dropped': { ...link, drop: 'packets to 192.168.50.0/24 do not get through nft table ip x', command: 'y' },
  'rules-unread': { ...link, packets: 'to the listen port', error: 'nft was not found', forwards: false },
};
