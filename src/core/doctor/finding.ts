/** The subjects of the examination, in the order of the output. */
export const subjects = [
  'tools',
  'kernel',
  'privileges',
  'managers',
  'disk',
  'files',
  'state',
  'daemon',
  'api',
  'clock',
  'dns',
  'ports',
  'forwarding',
  'network',
  'pins',
  'key',
  'mtu',
] as const;
export type FindingSubject = (typeof subjects)[number];

export interface Finding {
  readonly subject: FindingSubject;
  /** A problem prevents a function, now or later; a note is informational. */
  readonly verdict: 'ok' | 'note' | 'problem';
  readonly checked: string;
  readonly found: string;
  /** What to type or do next; null if there is nothing to do. */
  readonly remedy: string | null;
}

export function okFinding(subject: FindingSubject, checked: string, found: string): Finding {
  return { subject, verdict: 'ok', checked, found, remedy: null };
}

export function noteFinding(
  subject: FindingSubject,
  checked: string,
  found: string,
  remedy: string | null = null,
): Finding {
  return { subject, verdict: 'note', checked, found, remedy };
}

/** A missing subject would not mean that it is fine. */
export function notExamined(subject: FindingSubject): Finding {
  return noteFinding(subject, `${subject} of this host`, 'is not examined on this kind of host');
}

export function problemFinding(subject: FindingSubject, checked: string, found: string, remedy: string): Finding {
  return { subject, verdict: 'problem', checked, found, remedy };
}
