import type { Host } from './host.ts';

/** A TCP session to port 22 of a host. */
export interface SshSession {
  /** Types a line, and waits for its echo. */
  type(line: string): Promise<unknown>;
}

/** Opens a session from one host to port 22 of another, which echoes what is typed. */
export async function openSession(from: Host, to: Host): Promise<SshSession> {
  const serve = "require('net').createServer((each) => each.pipe(each)).listen(22, () => console.log('listening'))";
  await to.spawn(['node', '-e', serve]).waitForLine(/listening/);
  const dial = `process.stdin.pipe(require('net').connect(22, '${to.address}')).pipe(process.stdout)`;
  const client = from.spawn(['node', '-e', dial], { holdInput: true });
  const type = (line: string) => {
    client.writeInput(`${line}\n`);
    return client.waitForLine(new RegExp(line));
  };
  await type('hello');
  return { type };
}
