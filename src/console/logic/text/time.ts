/** An instant of the API for people: to the minute, in their time zone. */
export function formatTime(instant: string, locale?: string, timeZone?: string): string {
  const zone = timeZone === undefined ? {} : { timeZone };
  return new Date(instant).toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'short', ...zone });
}

/** As {@link formatTime}, to the second. */
export function formatMoment(instant: string): string {
  return new Date(instant).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

/** The instant in so many days from now, as the API takes it; null for an empty text. */
export function inDays(days: string, now: Date): string | null {
  const number = Number(days);
  if (days.trim() === '' || !Number.isFinite(number)) return null;
  return new Date(now.getTime() + number * 24 * 3600 * 1000).toISOString();
}
