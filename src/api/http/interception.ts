import { isSocketAddress } from '../../core/net/socket-path.ts';
import { AttemptFailed } from './attempt-failed.ts';
import type { ReplyHead, ReplyLimits } from './connection.ts';
import { sanitizeForMessage } from './sanitize-for-message.ts';

/**
 * A page in place of JSON or with a status that wants a login, a redirect to another host and a 511 (RFC 6585) come from a captive portal
 * or a proxy. It did not pass the request on.
 * A 5xx with a page is the service's own proxy, and no interception.
 */
export function intercepted(how: string): AttemptFailed {
  return new AttemptFailed(how, { retry: false, sent: true, perhapsDone: false, heard: false, intercepted: true });
}

/** True for a body with an HTML type and markup; some services send empty or plain text with that type. */
export function isPage(response: ReplyHead, bytes: Buffer): boolean {
  return hasPageType(response) && new TextDecoder().decode(bytes.subarray(0, 256)).trimStart().startsWith('<');
}

export function hasPageType(response: ReplyHead): boolean {
  return /^\s*(text\/html|application\/xhtml\+xml)\s*(;|$)/i.test([response.headers['content-type']].flat()[0] ?? '');
}

/** The host that a reply redirects to, where it is another one than was asked; null otherwise. */
export function findOtherHost(response: ReplyHead, { url, secrets }: ReplyLimits): string | null {
  const [location] = [response.headers.location].flat();
  const target = location === undefined ? null : URL.parse(location, url);
  if (target === null || !/^https?:$/.test(target.protocol)) return null;
  const own = isSocketAddress(url) ? 'localhost' : new URL(url).hostname;
  return target.hostname === own ? null : sanitizeForMessage(target.host, secrets, 100);
}
