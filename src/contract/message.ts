import * as z from 'zod';
import { identifier } from './text.ts';

/** The maximum number of peers in one message. */
export const mostProbed = 32;

/** A message for one host, in the reply to its request for the map. */
export const PeerMessage = z
  .object({
    kind: z.literal('probe'),
    data: z.object({
      peers: z.array(identifier).min(1).max(mostProbed).meta({ description: 'The peers to probe once.' }),
    }),
  })
  .meta({
    id: 'PeerMessage',
    description:
      'probe: the control plane lost the connections of these peers. The host reports in `probes` whether they answer it.',
  });
export type PeerMessage = z.infer<typeof PeerMessage>;
export type PeerMessageKind = PeerMessage['kind'];

/** The maximum number of messages in a reply. */
export const mostMessages = 8;
