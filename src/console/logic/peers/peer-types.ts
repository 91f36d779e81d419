import type { PeerType } from '../../../contract/peer.ts';

/** The texts for peer types. */
export const peerTypes: Readonly<Record<PeerType, string>> = {
  origin: 'server',
  connector: 'connector',
  admin_device: 'laptop or phone',
};
