import { StatementSync } from 'node:sqlite';
import pg from 'pg';

/** What the databases of this process were asked for since it began. */
export const counted = { statements: 0, commits: 0 };

/** Counts what this process asks of any database, whatever asks it; to be called once, before a database is opened. */
export function countStatements(): void {
  for (const method of ['all', 'run', 'get', 'iterate'] as const) {
    const original = StatementSync.prototype[method] as (...parameters: unknown[]) => unknown;
    const counting = function (this: StatementSync, ...parameters: unknown[]) {
      count(this.sourceSQL);
      return original.apply(this, parameters);
    };
    Object.assign(StatementSync.prototype, { [method]: counting });
  }
  const original = pg.Client.prototype.query as (...parameters: unknown[]) => unknown;
  const counting = function (this: pg.Client, ...parameters: unknown[]) {
    if (typeof parameters[0] === 'string') count(parameters[0]);
    return original.apply(this, parameters);
  };
  Object.assign(pg.Client.prototype, { query: counting });
}

function count(sql: string): void {
  const [word = ''] = /\w+/.exec(sql) ?? [];
  if (/^commit$/i.test(word)) counted.commits += 1;
  else if (!/^(begin|start|rollback)$/i.test(word)) counted.statements += 1;
}
