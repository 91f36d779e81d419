/**
 * A text as bytes that may be kept. A short text's bytes from Buffer.from() are a piece of a pool (Buffer.poolSize, 64 KiB), and whoever
 * keeps one of them keeps all of that.
 */
export function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
