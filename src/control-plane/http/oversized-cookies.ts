const leastBytes = 12 * 1024;

/**
 * True if cookies make the headers of a request too large: any server on a port of the same host
 * name can set them. False for a long URL, to which any page can link: it must not delete the
 * cookies of a browser.
 *
 * @param packet the bytes in which the headers became too large; they begin with the request line
 */
export function hasOversizedCookies(packet: unknown): boolean {
  if (!Buffer.isBuffer(packet)) return false;
  const [, ...headers] = packet.toString('latin1').split('\r\n');
  return headers.some((line) => /^cookie:/i.test(line) && line.length >= leastBytes);
}
