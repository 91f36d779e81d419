/** What a fault is done to. */
export type Group = 'control plane' | 'enrolment and crashes' | 'host drift';

/** A fault that a host survives. */
export interface Fault {
  readonly number: number;
  readonly name: string;
  readonly group: Group;
  /** Why there is no row of it; absent where a test records one. */
  readonly reason?: string;
}

/** Every fault of the suite. Each has a row, or its reason for having none. */
export const catalogue: readonly Fault[] = [
  ...group('control plane', 1, [
    'the control plane is down at boot',
    'it answers 5xx',
    'it answers 429',
    'it answers 401',
    'it answers 403 or 404',
    'its answer drips in byte by byte',
    'it accepts and never answers, or drops every packet',
    'its answer is no JSON',
    'its answer breaks off',
    'its answer lacks a field, or has a wrong type',
    'its answer is far too long',
    'its answer inflates to far too much',
    'it redirects elsewhere, or down to plain http',
    'its name does not resolve',
    'the clocks disagree',
    'it lists no peers, or no longer this host',
    'it lists 10,000 peers',
  ]),
  ...group('enrolment and crashes', 18, [
    'a power cut at any write',
    'the reply is lost after the key was used up',
    'kill -9 at any step',
    'two daemons at once',
    'the disk is full',
    'the disk is read-only',
    'the state is corrupt',
    'the state is of a newer version',
    'SIGTERM in the middle of a change',
  ]),
  ...group('host drift', 27, [
    'the interface is deleted',
    'wireguard-go is killed',
    'a peer is removed',
    'a peer is added by hand',
    'an address is removed',
    'a route is removed',
    'a more specific route takes the traffic away',
    'the private key is changed',
    'a network manager flushes rules',
    'the MTU is changed',
    'the network card goes down and up',
    "the address behind an endpoint's name changes",
    'the host sleeps and wakes',
    'two networks overlap',
    'a route would cut off SSH or the control plane',
    'a peer flaps',
    'a preshared key or a keepalive is cleared',
    'a range has host bits set',
    'the same interface name in two network namespaces',
  ]),
  ...group('host drift', 46, [
    'the interface is set down',
    'an address is added by hand',
    'the listen port is changed',
    'a mark is set on the tunnel',
    'the packet rules are flushed',
    'forwarding is switched off',
    'the wg-quick file is edited or deleted',
    'a routing daemon loads a large table',
    'DHCP adds routes (option 121)',
    'docker drops packets before they are forwarded',
    'an endpoint is of the other address family',
  ]),
  {
    number: 57,
    name: 'a copy of the host runs',
    group: 'host drift',
    reason: 'a person decides which host is the copy: test/e2e/clones.test.ts',
  },
  ...group('host drift', 58, ['a local resolver queries a server in a route', 'the HTTP proxy dies']),
];

/** The fault with this number. */
export function faultOf(number: number): Fault {
  const fault = catalogue.find((each) => each.number === number);
  if (fault === undefined) throw new Error(`there is no fault ${number}: see test/faults/catalogue.ts`);
  return fault;
}

function group(name: Group, first: number, names: readonly string[]): Fault[] {
  return names.map((each, index) => ({ number: first + index, name: each, group: name }));
}
