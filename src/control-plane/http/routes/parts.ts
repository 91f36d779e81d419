import * as z from 'zod';

/** A number in a path or a query, in plain digits. */
export const digits = <Number_ extends z.ZodInt>(number: Number_) =>
  z.preprocess(
    (text) => (typeof text === 'string' && /^(?:0|[1-9][0-9]{0,14})$/.test(text) ? Number(text) : text),
    number,
  );

const id = digits(z.int().min(1));

export const NetworkPath = z.object({ network: id });
export const KeyPath = NetworkPath.extend({ key: id });
export const PeerPath = NetworkPath.extend({ peer: id });
export const UserPath = z.object({ user: id });
export const UserSessionPath = UserPath.extend({ session: id });
export const TokenPath = z.object({ id });
export const FactorPath = z.object({ id });
export const SessionPath = z.object({ id });
export const DevicePath = z.object({ peer: id });

export const sessionTimes =
  'A session may end before expires_at if it is not used. last_used_at is its login or a later use, at most 5 minutes before its last one. ' +
  'A request with Prefer: wait is no use.';

/** The reply to a request without a result, after the work is done. */
export const Nothing = z.object({ data: z.null() });
export async function done(work: Promise<unknown>): Promise<z.infer<typeof Nothing>> {
  await work;
  return { data: null };
}
