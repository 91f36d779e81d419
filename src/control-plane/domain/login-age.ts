/** How long a login proves the password, in milliseconds. */
export const freshLoginMs = 5 * 60 * 1000;
/** How far the clock of the replica that took the login may be ahead. */
const clockToleranceMs = 5_000;

/**
 * True for a login of the last five minutes. A login in the future came from a clock that was
 * ahead. It may be old, and would count as fresh again once the clock reaches it.
 */
export function isFreshLogin(login: string, now: Date): boolean {
  const ageMs = now.getTime() - Date.parse(login);
  return ageMs <= freshLoginMs && ageMs >= -clockToleranceMs;
}
