import { randomBytes } from 'node:crypto';
import { parseAddress } from '../../core/cidr.ts';
import { makeKeyPair } from '../../core/keys.ts';
import type { InterfaceAddress } from '../../core/model.ts';
import { addressesOf } from './look-around.ts';
import type { Portable, Seen } from './observe.ts';
import { type KnownDevice, settle } from './settle.ts';
import { type TunnelFile, withSubnetPeer } from './tunnel-file.ts';

/** Brings a tunnel up, whole. The file is written first: whatever happens then, it says what may be up. */
export async function bringUp({ manager, files, run }: Portable, link: string, file: TunnelFile): Promise<void> {
  const helped = manager.lacksSubnetRoute ? withSubnetPeer(file, randomBytes(32)) : null;
  await files.write(link, helped?.file ?? file);
  try {
    await manager.up(link, files.path(link));
  } catch (error) {
    await files.remove(link);
    throw error;
  }
  if (helped === null) return;
  const real = await manager.realName(link, file);
  if (real !== null) await run('wg', ['set', real, 'peer', helped.publicKey, 'remove']);
}

/** Takes a tunnel down by the file that it has; one that stands for it, where it has none, only bears its name. */
export async function takeDown({ manager, files }: Portable, link: string, seen: Seen): Promise<void> {
  if (seen.file === null) {
    const { privateKey } = seen.privateKey === null ? makeKeyPair(randomBytes(32)) : { privateKey: seen.privateKey };
    const [address = { address: parseAddress('127.0.0.1'), length: 32 }] = ownAddresses(seen);
    await files.write(link, settle({ file: null, device: whole({ privateKey }), addresses: [address] }, []));
  }
  await manager.down(link, files.path(link));
}

/** What the interface has now; nothing where it is not there. */
export function ownAddresses({ real, cards }: Seen): InterfaceAddress[] {
  return real === null ? [] : addressesOf(cards, real);
}

/** The table of a tunnel that can be brought up: what was not said is none. */
export function whole({ privateKey, listenPort = null, fwmark = null, peers = [] }: Partial<KnownDevice>): KnownDevice {
  if (privateKey === undefined) throw new Error('a tunnel is brought up without a private key');
  return { privateKey, listenPort, fwmark, peers };
}
