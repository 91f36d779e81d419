import type { AuditEntry } from '../../api/admin-service.ts';
import { describeDetails } from '../../core/events/describe-event.ts';
import { openAdmin } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { apiFlags, jsonFlag } from '../input/flags.ts';
import { note, print, printJson, table } from '../output/output.ts';
import type { Command } from '../parse/command.ts';

const usualLimit = 50;
const maxLimit = 10_000;
/** The maximum, because a flag may have ten digits. */
const maxId = 9_999_999_999;

export const audit: Command = {
  name: 'audit',
  summary: 'Show the audit log of the organization, newest first',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    limit: { kind: 'text', value: '1..10000', summary: 'number of entries', byDefault: String(usualLimit) },
    before: { kind: 'text', value: 'ID', summary: 'only entries older than this one' },
  },
  examples: ['cpn audit --limit 20', 'cpn audit --before 1042'],
  async run(input) {
    const limit = input.number('limit', 1, maxLimit) ?? usualLimit;
    const before = input.number('before', 1, maxId);
    const service = await openAdmin(input);
    const entries = await service.readAudit({ limit, ...(before !== undefined && { before }) });
    // A full page may have a successor.
    const next = entries.length < limit ? null : (entries.at(-1)?.id ?? null);
    if (input.switch('json')) {
      printJson({ entries, next });
    } else if (entries.length === 0) {
      note(before === undefined ? 'the audit log is empty' : `there are no entries before ${before}`);
    } else {
      print(table(['id', 'when', 'who', 'what', 'on', 'from', ''], entries.map(toRow)));
      if (next !== null) note(`older entries: cpn audit --limit ${limit} --before ${next}`);
    }
    return exitCodes.done;
  },
};

function toRow({ id, at, actor, action, target, address, details }: AuditEntry): string[] {
  return [String(id), at, describe(actor), action, describe(target), address ?? '-', describeDetails(details)];
}

function describe({ kind, id, name }: AuditEntry['actor'] | AuditEntry['target']): string {
  const what = kind === 'enrollment_key' ? 'enrolment key' : kind.replaceAll('_', ' ');
  const who = [name, id === null ? null : `(${id})`].filter((part) => part !== null).join(' ');
  return who === '' ? what : `${what} ${who}`;
}
