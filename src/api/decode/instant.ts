/**
 * Writes an instant in ISO 8601 and UTC, whatever form a service gives it in; null for what is
 * none. A date without an offset is in UTC: it comes from a database, and it does not depend on
 * this host's time zone.
 */
export function readInstant(given: string | number): string | null {
  const isSeconds = typeof given === 'number' && Math.abs(given) < mostSeconds;
  const time = typeof given === 'number' ? given * (isSeconds ? 1000 : 1) : Date.parse(withOffset(given.trim()));
  return Number.isNaN(time) || Math.abs(time) > mostMs ? null : new Date(time).toISOString();
}

/**
 * A count below this is of seconds, else of milliseconds: it stands for the year 5138 or for 1973.
 */
const mostSeconds = 1e11;

/** ECMA-262, 21.4.1.1: what a Date can hold. */
const mostMs = 8.64e15;

/**
 * `2030-01-31 12:00:00`, as SQL writes it, and ISO 8601 without an offset, are local time to
 * Date.parse.
 */
function withOffset(text: string): string {
  const [, day, time] = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)$/i.exec(text) ?? [];
  return day === undefined || time === undefined ? text : `${day}T${time.replace(',', '.')}Z`;
}
