import * as z from 'zod';

/** How a host reaches a peer, from its own measurements. */
export const PathState = z.enum(['direct', 'relayed', 'stale', 'down', 'never']).meta({
  description:
    'direct: the peer answers. relayed: its packets go through the connector `via`. stale: the session is old and nothing was sent. down: the peer does not answer. never: there was no handshake.',
});
export type PathState = z.infer<typeof PathState>;
