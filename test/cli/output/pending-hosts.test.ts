import { afterEach, describe, expect, it, vi } from 'vitest';
import type { PendingHost } from '../../../src/api/admin-service.ts';
import { noteDeletion, notePending } from '../../../src/cli/output/pending-hosts.ts';

afterEach(() => vi.restoreAllMocks());

const now = new Date('2030-01-31T12:00:00Z');

function host(name: string, facts: Partial<PendingHost> = {}): PendingHost {
  return { id: 1, name, last_seen: '2030-01-31T11:59:00Z', version: '1.2.3', ...facts } as PendingHost;
}

function said(work: () => void): string[] {
  const lines: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => lines.push(String(text).trimEnd()) > 0);
  work();
  return lines;
}

describe('hosts that have not applied a removal', () => {
  it('are named with their last request and version', () => {
    const some = [host('edge'), host('old', { last_seen: null, version: undefined })];
    const [line, ...more] = said(() => notePending(some, now));
    expect(more).toEqual([]);
    expect(line).toContain('edge (last request 60 s ago, cpn 1.2.3), old (no request lately); they may still reach');
  });

  it('are named up to twenty, and the others counted', () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => host(`h${index}`));
    expect(said(() => notePending(many(20), now)).join()).not.toContain('more');
    expect(said(() => notePending(many(21), now)).join()).toMatch(/h19 \([^)]*\) and 1 more;/);
  });

  it('are none only where that is known', () => {
    expect(said(() => notePending(null, now))).toEqual([]);
    expect(said(() => notePending([], now))).toEqual(['all hosts have applied it']);
    expect(said(() => noteDeletion(null, 7, now))).toEqual([]);
    expect(said(() => noteDeletion([], 7, now))).toEqual(['all hosts have taken their tunnel down']);
  });
});

describe('hosts of a deleted network', () => {
  it('that can take their tunnel down later are distinguished from those that never do', () => {
    const states = ['unsupported', undefined, 'pending'];
    const hosts = states.map((deletion) => host(`is-${deletion}`, { deletion } as Partial<PendingHost>));
    const [later = '', never = '', ...more] = said(() => noteDeletion(hosts, 7, now));
    expect(more).toEqual([]);
    expect(later).toContain('have not taken their tunnel down: is-undefined');
    expect(later).toContain('is-pending');
    expect(later).toContain('cpn api GET /api/networks/7/removals');
    expect(later).not.toContain('is-unsupported');
    expect(never).toMatch(/keeps the tunnel up: is-unsupported \([^)]*\); upgrade cpn there/);
    expect(never).not.toMatch(/is-(undefined|pending)/);
  });
});
