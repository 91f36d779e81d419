/** Formats an instant to the second in the user's time zone, which it shows. */
export function formatExact(instant: string, locale?: string, timeZone?: string): string {
  const date = { day: 'numeric', month: 'short', year: 'numeric' } as const;
  const time = { hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' } as const;
  return new Date(instant).toLocaleString(locale, { ...date, ...time, ...(timeZone !== undefined && { timeZone }) });
}

const [minute, hour, day] = [60, 3600, 86_400];

/** `now` is in milliseconds. A clock that is ahead by some seconds produces no future time. */
export function formatAgo(instant: string, now: number): string {
  const seconds = Math.round((now - Date.parse(instant)) / 1000);
  const distance = Math.abs(seconds);
  if (distance < 10 || (seconds < 0 && distance < minute)) return 'just now';
  const text = formatDistance(distance);
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

function formatDistance(seconds: number): string {
  if (seconds < minute) return `${seconds} s`;
  if (seconds < hour) return `${Math.floor(seconds / minute)} min`;
  if (seconds < 2 * day) return `${Math.floor(seconds / hour)} h`;
  return `${Math.floor(seconds / day)} days`;
}

/** The instant in `days` days for the API; null for an empty text. */
export function inDays(days: string, now: Date): string | null {
  const number = Number(days);
  if (days.trim() === '' || !Number.isFinite(number)) return null;
  return new Date(now.getTime() + number * 24 * 3600 * 1000).toISOString();
}

export function formatSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

export function formatRate(rate: number): string {
  const units = ['B/s', 'kB/s', 'MB/s', 'GB/s'];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, rate)) / 3));
  const value = rate / 1000 ** step;
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[step]}`;
}

/** The values of a list field, such as routes, separated by spaces, commas or lines. */
export function splitWords(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

/** Turns an API message, which is in lower case and has no full stop, into a sentence. */
export function toSentence(message: string): string {
  const [first = '', ...rest] = message;
  const text = first.toUpperCase() + rest.join('');
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
