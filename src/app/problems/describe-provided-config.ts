import type { Joined } from '../../store/state/state.ts';

/** Remarks on the wg-quick text that the service gave at the enrolment. */
export function describeProvidedConfig({ membership: { text }, service }: Joined): string[] {
  if (text === undefined) return [];
  const names = text.dns.join(', ');
  const dns = `${service.url} names ${names} as DNS for this network; cpn does not change this host's resolver`;
  return [
    ...(text.dns.length > 0 ? [dns] : []),
    ...text.remarks.map((remark) => `of the wg-quick text from ${service.url}: ${remark}`),
  ];
}
