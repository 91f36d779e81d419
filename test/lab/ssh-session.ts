import type { Host } from './host.ts';

/** A TCP session to port 22 of a host. */
export interface SshSession {
  /** Types a line, and waits for its echo. */
  type(line: string): Promise<unknown>;
  end(): Promise<unknown>;
}

/** Takes sessions on port 22 of a host, and echoes what is typed. */
export async function serveSessions(host: Host): Promise<void> {
  const serve = "require('net').createServer((each) => each.pipe(each)).listen(22, () => console.log('listening'))";
  await host.spawn(['node', '-e', serve]).waitForLine(/listening/);
}

/** Opens a session from a host to port 22 at an address, where sessions are served. */
export async function dialSession(from: Host, address: string): Promise<SshSession> {
  const dial = `process.stdin.pipe(require('net').connect(22, '${address}')).pipe(process.stdout)`;
  const client = from.spawn(['node', '-e', dial], { holdInput: true });
  const type = (line: string) => {
    client.writeInput(`${line}\n`);
    return client.waitForLine(new RegExp(line));
  };
  await type('hello');
  return { type, end: () => client.stop() };
}

/** Opens a session from one host to port 22 of another, which echoes what is typed. */
export async function openSession(from: Host, to: Host): Promise<SshSession> {
  await serveSessions(to);
  return dialSession(from, to.address);
}
