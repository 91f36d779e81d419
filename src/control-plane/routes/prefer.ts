const longestWait = 60;

// A quoted string that has no end reaches to the end of the header: so no character is looked at twice.
const preferences = /(?:[^",]|"(?:[^"\\]|\\.)*\\?(?:"|$))+/g;
const waitPreference = /^\s*wait\s*(?:=\s*(?:([0-9]+)|"([0-9]+)")\s*)?(?:;.*)?$/i;
const nameOfWait = /^\s*wait\s*(?:[=;]|$)/i;

/**
 * The seconds that a Prefer header asks to wait (RFC 7240), 60 at most; null when it doesn't, or not in the form that
 * the RFC gives it. Of several it is the first that counts.
 */
export function readWait(prefer: string | undefined): number | null {
  const first = (prefer ?? '').match(preferences)?.find((preference) => nameOfWait.test(preference));
  const [, plain, quoted] = waitPreference.exec(first ?? '') ?? [];
  const seconds = plain ?? quoted;
  return seconds === undefined ? null : Math.min(Number(seconds), longestWait);
}
