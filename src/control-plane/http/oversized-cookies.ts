const leastBytes = 12 * 1024;

/**
 * True where cookies are what makes the headers of a request too large: any server on a port of the same host name can set them. False
 * for a long URL, which any page can link to: it must not cost a browser its cookies.
 *
 * @param packet the bytes in which the headers became too large; they begin with the request line
 */
export function hasOversizedCookies(packet: unknown): boolean {
  if (!Buffer.isBuffer(packet)) return false;
  const [, ...headers] = packet.toString('latin1').split('\r\n');
  return headers.some((line) => /^cookie:/i.test(line) && line.length >= leastBytes);
}
