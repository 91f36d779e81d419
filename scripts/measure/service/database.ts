import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { asSuperuser, type PostgresServer, startPostgres, urlOf } from '../../../test/control-plane/postgres-server.ts';

/** A database for a simulation, and its figures from outside. */
export interface Database {
  /** Null for one in the control plane's folder. */
  readonly url: string | null;
  /** Milliseconds of processor time that its own processes have used; 0 where it has none. */
  cpuMs(): number;
  /** Bytes on disk. */
  bytes(): Promise<number>;
  /** Bytes that were written to its log since it began; null where they are not counted. */
  logged(): Promise<number | null>;
  remove(): Promise<void>;
}

export type DatabaseKind = 'sqlite' | 'postgres';

/** A database of this kind, empty; the folder is the control plane's. */
export async function openDatabase(kind: DatabaseKind, folder: string): Promise<Database> {
  if (kind === 'sqlite') {
    const size = (name: string) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0;
    return {
      ...{ url: null, cpuMs: () => 0, logged: async () => null, remove: async () => {} },
      bytes: async () => size('control-plane.db') + size('control-plane.db-wal'),
    };
  }
  const server = await startPostgres({ settings: ['max_connections=100'] });
  await asSuperuser(server, (client) => client.query(`create database ${name}`));
  const query = (sql: string) =>
    asSuperuser(server, async (client) => Number((await client.query(`select ${sql} as figure`)).rows[0].figure), name);
  return {
    url: urlOf(server, name),
    cpuMs: () => cpuMsOf(server),
    bytes: () => query(`pg_database_size('${name}')`),
    logged: () => query(`pg_current_wal_insert_lsn() - '0/0'::pg_lsn`),
    remove: server.remove,
  };
}

const name = 'cpn_simulation';

/** Of the server and all its processes, ended ones too: proc_pid_stat(5), in ticks of 10 ms. */
function cpuMsOf({ socket }: PostgresServer): number {
  const [main = ''] = readFileSync(join(socket, 'data', 'postmaster.pid'), 'utf8').split('\n');
  let ticks = 0;
  for (const pid of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    const fields = readStat(pid);
    if (pid === main) ticks += sum(fields.slice(11, 15));
    else if (fields[1] === main) ticks += sum(fields.slice(11, 13));
  }
  return ticks * 10;
}

/** The fields after the name: state, parent, and so on; none of a process that ended meanwhile. */
function readStat(pid: string): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

function sum(ticks: readonly string[]): number {
  return ticks.reduce((total, each) => total + Number(each), 0);
}
