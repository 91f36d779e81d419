import { CommandFailed } from '../../core/errors/index.ts';
import type { EchoRequest } from '../../core/health/path-mtu.ts';
import { routeProtocol } from '../../core/host-state/marks.ts';
import { type Address, familyOf } from '../../core/net/cidr.ts';
import { parseLinkName } from '../../core/net/link-name.ts';
import type { Run } from '../process/run.ts';
import { batchArgs } from './ip/batch.ts';

/**
 * One of the three bits of the type of service that select a route (IPTOS_RT_MASK in
 * include/uapi/linux/in_route.h). No DSCP in use consists of that bit (RFC 4594).
 */
const echoTos = '0x04';

/** The minimum that ping(8) allows without privileges. */
const intervalSeconds = 0.2;

/** ping of iputils: `-M do` forbids fragments, `-s` excludes headers, exit code 0 is a reply. */
export async function probeSize(
  run: Run,
  address: Address,
  { bytes, count, mark, from }: EchoRequest,
  deadlineMs: number,
): Promise<boolean> {
  const headers = familyOf(address) === 4 ? 28 : 48;
  const how = ['-n', '-q', '-M', 'do', '-Q', echoTos, '-i', String(intervalSeconds), '-W', String(deadlineMs / 1000)];
  try {
    const marked = mark === undefined ? [] : ['-m', String(mark)];
    const bound = from === undefined ? [] : ['-I', `${from.address}%${parseLinkName(from.link)}`];
    await run('ping', [...how, ...marked, ...bound, '-c', String(count), '-s', String(bytes - headers), address], {
      deadlineMs: deadlineMs + count * intervalSeconds * 1000 + 1_000,
    });
    return true;
  } catch (error) {
    if (error instanceof CommandFailed) return false;
    throw error;
  }
}

/**
 * Adds a route for echoes to each address, with `mtu`. Returns a function that removes the routes.
 *
 * The MTU of a route may exceed that of its interface (ip_dst_mtu_maybe_forward in
 * include/net/ip.h). WireGuard accepts such packets (calculate_skb_padding in
 * drivers/net/wireguard/send.c).
 */
export async function raiseProbeMtu(
  run: Run,
  link: string,
  addresses: readonly Address[],
  mtu: number,
): Promise<() => Promise<void>> {
  const routes = addresses.map((address) => `${address}/32 tos ${echoTos} dev ${link} proto ${routeProtocol}`);
  const change = async (verb: string, rest = '') => {
    const input = routes.map((route) => `route ${verb} ${route}${rest}\n`).join('');
    await run('ip', batchArgs, { input });
  };
  await change('replace', ` mtu ${mtu}`);
  return async () => {
    try {
      await change('delete');
    } catch (error) {
      // The interface was deleted, and its routes with it.
      if (!(error instanceof CommandFailed)) throw error;
    }
  };
}
