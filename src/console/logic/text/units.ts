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
