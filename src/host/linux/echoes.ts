import { type Address, familyOf } from '../../core/cidr.ts';
import { CommandFailed } from '../../core/errors.ts';
import { routeProtocol } from '../../core/marks.ts';
import type { EchoRequest } from '../../core/path-mtu.ts';
import type { Run } from '../run.ts';
import { batchArgs } from './ip-batch.ts';

/**
 * The type of service of our echoes, and of the routes that carry nothing else. Of the three bits by which the kernel chooses a route
 * (IPTOS_RT_MASK in include/uapi/linux/in_route.h) it has one that no DSCP in use has alone (RFC 4594).
 */
const service = '0x04';

/** Seconds between two echoes: the least that ping(8) allows to everybody. */
const pause = 0.2;

/** Sends echoes with iputils: `-M do` forbids fragments, `-s` is without the IP and ICMP headers, one answer makes exit code 0. */
export async function echoes(
  run: Run,
  address: Address,
  { bytes, count }: EchoRequest,
  deadlineMs: number,
): Promise<boolean> {
  const headers = familyOf(address) === 4 ? 28 : 48;
  const how = ['-n', '-q', '-M', 'do', '-Q', service, '-i', String(pause), '-W', String(deadlineMs / 1000)];
  try {
    await run('ping', [...how, '-c', String(count), '-s', String(bytes - headers), address], {
      deadlineMs: deadlineMs + count * pause * 1000 + 1_000,
    });
    return true;
  } catch (error) {
    if (error instanceof CommandFailed) return false;
    throw error;
  }
}

/**
 * Gives echoes to these addresses a route with an MTU of its own. The MTU of a route may be above that of its interface
 * (ip_dst_mtu_maybe_forward in include/net/ip.h), and WireGuard takes such packets (calculate_skb_padding in
 * drivers/net/wireguard/send.c).
 */
export async function widen(
  run: Run,
  link: string,
  addresses: readonly Address[],
  mtu: number,
): Promise<() => Promise<void>> {
  const routes = addresses.map((address) => `${address}/32 tos ${service} dev ${link} proto ${routeProtocol}`);
  const change = async (verb: string, rest = '') => {
    const input = routes.map((route) => `route ${verb} ${route}${rest}\n`).join('');
    await run('ip', batchArgs, { input });
  };
  await change('replace', ` mtu ${mtu}`);
  return async () => {
    try {
      await change('delete');
    } catch (error) {
      // They went with the interface.
      if (!(error instanceof CommandFailed)) throw error;
    }
  };
}
