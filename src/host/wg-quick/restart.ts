import { randomBytes } from 'node:crypto';
import { makeKeyPair } from '../../core/crypto/keys.ts';
import { type InterfaceAddress, parseAddress } from '../../core/net/cidr.ts';
import { applyCommands, type DeviceConfig } from './apply-commands.ts';
import type { PortableContext, TunnelObservation } from './observe.ts';
import { type TunnelFile, withSubnetPeer } from './tunnel-files.ts';
import { addressesOf } from './underlay.ts';

/** Writes the file first, so that it describes the tunnel even after a crash. */
export async function bringUp({ manager, files, run }: PortableContext, link: string, file: TunnelFile): Promise<void> {
  const withPeer = manager.lacksSubnetRoute ? withSubnetPeer(file, randomBytes(32)) : null;
  await files.write(link, withPeer?.file ?? file);
  try {
    await manager.up(link, files.path(link));
  } catch (error) {
    await files.remove(link);
    throw error;
  }
  if (withPeer === null) return;
  const kernelName = await manager.kernelName(link, file);
  if (kernelName !== null) await run('wg', ['set', kernelName, 'peer', withPeer.publicKey, 'remove']);
}

/** Takes a tunnel down with its file. Without a file, uses a placeholder of the same name. */
export async function takeDown(
  { manager, files }: PortableContext,
  link: string,
  observed: TunnelObservation,
): Promise<void> {
  if (observed.file === null) {
    const { privateKey } =
      observed.privateKey === null ? makeKeyPair(randomBytes(32)) : { privateKey: observed.privateKey };
    const [address = { address: parseAddress('127.0.0.1'), length: 32 }] = ownAddresses(observed);
    await files.write(
      link,
      applyCommands({ file: null, device: completeDevice({ privateKey }), addresses: [address] }, []),
    );
  }
  await manager.down(link, files.path(link));
}

/** Empty if no interface exists. */
export function ownAddresses({ kernelName, interfaces }: TunnelObservation): InterfaceAddress[] {
  return kernelName === null ? [] : addressesOf(interfaces, kernelName);
}

export function completeDevice({
  privateKey,
  listenPort = null,
  fwmark = null,
  peers = [],
}: Partial<DeviceConfig>): DeviceConfig {
  if (privateKey === undefined) throw new Error('a tunnel is brought up without a private key');
  return { privateKey, listenPort, fwmark, peers };
}
