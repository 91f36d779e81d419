/** An amount of bytes as people read it: `512 B`, `1.4 MiB`. */
export function describeBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const amount = bytes / 1024 ** power;
  return `${power === 0 ? amount : amount.toFixed(1)} ${units[power]}`;
}
