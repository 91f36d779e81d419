/** What is examined, in the order in which a person reads of it. */
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

/** What an examination found in one place. */
export interface Finding {
  readonly subject: FindingSubject;
  /** A problem keeps something from working, or will; a note is worth knowing. */
  readonly verdict: 'ok' | 'note' | 'problem';
  /** What was looked at. */
  readonly checked: string;
  readonly found: string;
  /** What to type or do next; null where there is nothing to do. */
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

/** Silence about a subject is no good news. */
export function notExamined(subject: FindingSubject): Finding {
  return noteFinding(subject, `${subject} of this host`, 'is not examined on this kind of host');
}

export function problemFinding(subject: FindingSubject, checked: string, found: string, remedy: string): Finding {
  return { subject, verdict: 'problem', checked, found, remedy };
}
