import * as z from 'zod';

/** A number in a path. Anything but plain digits names nothing. */
const id = z.preprocess(
  (text) => (typeof text === 'string' && /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : text),
  z.int().min(1),
);

export const NetworkPath = z.object({ network: id });
export const KeyPath = NetworkPath.extend({ key: id });
export const PeerPath = NetworkPath.extend({ peer: id });

/** The reply to a request that leaves nothing to show. */
export const Nothing = z.object({ data: z.null() });
export const nothing: z.infer<typeof Nothing> = { data: null };
