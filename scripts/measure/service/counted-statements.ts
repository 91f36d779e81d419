import { StatementSync } from 'node:sqlite';
import pg from 'pg';

/** The statements to the databases of this process since its start. */
export const counted = { statements: 0, commits: 0 };

/**
 * Counts the statements of this process to any database; to be called once, before a database is
 * opened.
 */
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
    const [sql, values] = parameters;
    if (typeof sql === 'string' && !isOfConnection(sql) && !isOfListener(values)) count(sql);
    return original.apply(this, parameters);
  };
  Object.assign(pg.Client.prototype, { query: counting });
}

/** True for the statement with which each connection of the pool begins. */
function isOfConnection(sql: string): boolean {
  return sql.startsWith('select set_config(');
}

/**
 * True for the parameters of the notification by which a process finds out, every few seconds, that
 * it listens.
 */
function isOfListener(parameters: unknown): boolean {
  return Array.isArray(parameters) && String(parameters[0]).startsWith('cpn_listener_');
}

function count(sql: string): void {
  const [word = ''] = /\w+/.exec(sql) ?? [];
  if (/^commit$/i.test(word)) counted.commits += 1;
  else if (!/^(begin|start|rollback)$/i.test(word)) counted.statements += 1;
}
