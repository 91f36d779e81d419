import type { AuditEntry } from '../../api/admin-service.ts';
import { type ChainVerdict, createVerifier } from '../../core/audit/verify-chain.ts';
import { printable, WrongUsage } from '../../core/errors/index.ts';
import { describeDetails } from '../../core/events/describe-event.ts';
import { openAdmin } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { type ExportedAudit, readExportedAudit } from '../input/exported-audit.ts';
import { apiFlags, jsonFlag } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { green, note, print, printJson, red, table, warn } from '../output/output.ts';
import type { Command } from '../parse/command.ts';

const usualLimit = 50;
const maxLimit = 10_000;
/** The maximum, because a flag may have ten digits. */
const maxId = 9_999_999_999;

export const audit: Command = {
  name: 'audit',
  summary: 'Show the audit log of the organization, newest first, or verify that it was not changed',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    limit: { kind: 'text', value: '1..10000', summary: 'number of entries', byDefault: String(usualLimit) },
    before: { kind: 'text', value: 'ID', summary: 'only entries older than this one' },
    verify: { kind: 'switch', summary: 'read the whole log, and verify its chain of hashes on this machine' },
    against: {
      kind: 'text',
      value: 'PATH',
      summary: 'with --verify: compare it with entries that left the control plane, of --audit-log or of --json',
    },
  },
  examples: [
    'cpn audit --limit 20',
    'cpn audit --before 1042',
    'cpn audit --verify --against /var/lib/cpn-control-plane/audit.log',
  ],
  async run(input) {
    if (input.switch('verify')) return verify(input);
    if (input.has('against')) throw new WrongUsage('--against is for --verify; give --verify too');
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

const linksAtOnce = 1_000;
const nothing: ExportedAudit = { links: [], unread: null };

/** Verifies on this machine: a control plane that was taken over would report no change. */
async function verify(input: Input): Promise<number> {
  const unused = ['limit', 'before'].find((flag) => input.has(flag));
  if (unused !== undefined) throw new WrongUsage(`--verify reads the whole log; leave out --${unused}`);
  const path = input.text('against');
  const { links: exported, unread } = path === undefined ? nothing : await readExportedAudit(path);
  const verifier = createVerifier(exported);
  const service = await openAdmin(input);
  for (let after = 0, isWhole = false; !isWhole; ) {
    const chain = await service.readAuditChain({ after, limit: linksAtOnce });
    isWhole = chain.length === 0 || !chain.every((link) => verifier.take(link));
    after = chain.at(-1)?.seq ?? after;
  }
  const verdict = verifier.finish();
  if (input.switch('json')) printJson({ ...toJson(verdict), unread });
  else show(verdict);
  if (unread !== null) warn(`--against has ${unread.count} lines that are no entry, the first at line ${unread.first}`);
  return verdict.misfit === null ? exitCodes.done : exitCodes.failed;
}

function toJson({ misfit, ...verdict }: ChainVerdict) {
  return { ok: misfit === null, ...verdict, misfit };
}

function show({ misfit, verified, pruned, first, last, compared, older }: ChainVerdict): void {
  if (misfit !== null) {
    const entry = misfit.entry === null ? 'a missing entry' : `entry ${misfit.entry}`;
    print(`${red('changed')}: link ${misfit.seq}, ${printable(entry)}: ${printable(misfit.problem)}`);
    return;
  }
  if (last === null) {
    note('the audit log has no chained entry yet; try again in some seconds');
    return;
  }
  print(`${green('unchanged')}: ${verified} entries, links ${first} to ${last}`);
  if (pruned > 0) note(`removed by retention, by the statements in the log: ${pruned} entries`);
  if (compared > 0) note(`equal to the exported file: ${compared} entries`);
  if (older > 0) note(`not compared, because retention removed their links: ${older} exported entries`);
}

function toRow({ id, at, actor, action, target, address, details }: AuditEntry): string[] {
  return [String(id), at, describe(actor), action, describe(target), address ?? '-', describeDetails(details)];
}

function describe({ kind, id, name }: AuditEntry['actor'] | AuditEntry['target']): string {
  const what = kind === 'enrollment_key' ? 'enrolment key' : kind.replaceAll('_', ' ');
  const who = [name, id === null ? null : `(${id})`].filter((part) => part !== null).join(' ');
  return who === '' ? what : `${what} ${who}`;
}
