import type { PeerType } from '../../../contract/peer.ts';

/** What the types of peers are called. */
export const peerTypes: Readonly<Record<PeerType, string>> = {
  origin: 'server',
  connector: 'connector',
  admin_device: 'laptop or phone',
};
