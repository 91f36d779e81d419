import { isSocketAddress } from '../../core/net/socket-path.ts';
import { AttemptFailed } from './attempt-failed.ts';
import type { ReplyHead, ReplyLimits } from './connection.ts';
import { sanitizeForMessage } from './sanitize-for-message.ts';

/**
 * The failure for replies of a captive portal or a proxy: a page in place of JSON or with a status
 * that demands a login, a redirect to another host, or a 511 (RFC 6585). The request did not reach
 * the service. A 5xx with a page comes from the service's own proxy, and is not an interception.
 */
export function intercepted(how: string): AttemptFailed {
  return new AttemptFailed(how, { retry: false, sent: true, perhapsDone: false, heard: false, intercepted: true });
}

/** True for an HTML type with markup: some services send empty or plain text with that type. */
export function isPage(response: ReplyHead, bytes: Buffer): boolean {
  return hasPageType(response) && new TextDecoder().decode(bytes.subarray(0, 256)).trimStart().startsWith('<');
}

export function hasPageType(response: ReplyHead): boolean {
  return /^\s*(text\/html|application\/xhtml\+xml)\s*(;|$)/i.test([response.headers['content-type']].flat()[0] ?? '');
}

/** Returns the host of a redirect if it differs from the requested host, else null. */
export function findOtherHost(response: ReplyHead, { url, secrets }: ReplyLimits): string | null {
  const [location] = [response.headers.location].flat();
  const target = location === undefined ? null : URL.parse(location, url);
  if (target === null || !/^https?:$/.test(target.protocol)) return null;
  const own = isSocketAddress(url) ? 'localhost' : new URL(url).hostname;
  return target.hostname === own ? null : sanitizeForMessage(target.host, secrets, 100);
}
