import type { AccessChange } from '../../../contract/rules.ts';
import type { PortRange, Rule } from '../../../core/map/access-rules.ts';
import { formatPorts, mergePorts, subtractPorts } from '../../../core/rules/selector.ts';

/** The connections from one end to another that are allowed. */
export interface Access {
  readonly tcp: readonly PortRange[];
  readonly udp: readonly PortRange[];
  readonly icmp: boolean;
  /** Every other protocol. */
  readonly other: boolean;
}

const everyPort = [{ first: 1, last: 65_535 }];
export const fullAccess: Access = { tcp: everyPort, udp: everyPort, icmp: true, other: true };
export const noAccess: Access = { tcp: [], udp: [], icmp: false, other: false };

/** The connections that at least one of the rules allows. */
export function uniteRules(rules: readonly Rule[]): Access {
  const portsOf = (wanted: 'tcp' | 'udp') => {
    const of = rules.filter(({ protocol }) => protocol === 'any' || protocol === wanted);
    return mergePorts(of.flatMap(({ ports }) => (ports.length === 0 ? everyPort : ports)));
  };
  const every = rules.filter(({ protocol }) => protocol === 'any');
  return {
    ...{ tcp: portsOf('tcp'), udp: portsOf('udp') },
    icmp: every.length > 0 || rules.some(({ protocol }) => protocol === 'icmp'),
    other: every.length > 0,
  };
}

type Connections = Pick<AccessChange, 'protocol' | 'ports'>;

/** The connections that `one` allows and `other` does not. `any` stands for every protocol. */
export function subtractAccess(one: Access, other: Access): Connections[] {
  const [tcp, udp] = [subtractPorts(one.tcp, other.tcp), subtractPorts(one.udp, other.udp)];
  const icmp = one.icmp && !other.icmp;
  const rest = one.other && !other.other;
  if (isEveryPort(tcp) && isEveryPort(udp) && icmp && rest) return [{ protocol: 'any', ports: [] }];
  return [
    ...(tcp.length > 0 ? [{ protocol: 'tcp' as const, ports: namePorts(tcp) }] : []),
    ...(udp.length > 0 ? [{ protocol: 'udp' as const, ports: namePorts(udp) }] : []),
    ...(icmp ? [{ protocol: 'icmp' as const, ports: [] }] : []),
    ...(rest ? [{ protocol: 'other' as const, ports: [] }] : []),
  ];
}

function namePorts(ranges: readonly PortRange[]): string[] {
  return isEveryPort(ranges) ? [] : ranges.map(formatPorts);
}

function isEveryPort(ranges: readonly PortRange[]): boolean {
  return ranges.length === 1 && ranges[0]?.first === 1 && ranges[0].last === 65_535;
}
