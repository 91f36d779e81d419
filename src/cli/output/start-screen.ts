import { listInterfaces } from '../context.ts';
import type { Command } from '../parse/command.ts';
import { bold, dim, note } from './output.ts';

/** Commands and groups by topic, in the order in which a new user needs them. */
export const topics: Readonly<Record<string, readonly string[]>> = {
  'this host': ['join', 'run', 'up', 'down', 'set', 'rotate-key', 'accept', 'drain', 'leave'],
  diagnosis: ['status', 'wait', 'explain', 'doctor', 'plan', 'reconcile', 'events', 'debug'],
  phones: ['export'],
  admin: ['login', 'whoami', 'logout', 'network', 'key', 'peer', 'user', 'token', 'audit', 'api'],
  server: ['control-plane'],
  shell: ['completion'],
};

const joinExample = 'cpn join file:key --api https://cp.example.net';

/** The examples at the end of `cpn --help`. */
export const programExamples: readonly (readonly [string, string])[] = [
  [joinExample, 'join a network with the key in a file'],
  ['cpn status', 'peers, routes and drift'],
  ['cpn help join', 'flags and examples of a command'],
];

/** The screen of `cpn` alone: the first step, and the commands by topic. It fits into 24 rows of 80 columns. */
export async function showStart(environment: NodeJS.ProcessEnv): Promise<void> {
  const links = await findJoined(environment);
  const width = Math.max(...Object.keys(topics).map((topic) => topic.length));
  const lists = Object.entries(topics).map(([topic, names]) => `${bold(topic.padEnd(width))}  ${names.join(', ')}`);
  const help = '"cpn --help" lists the commands; "cpn help join" shows flags and examples.';
  note([describeBeginning(links), lists.join('\n'), help].join('\n\n'));
}

/** The screen of a group alone: its commands. */
export function showGroup(group: string, commands: readonly Command[]): void {
  const members = commands.filter(({ name }) => name.startsWith(`${group} `));
  const shapes = members.map(({ name, argument }) => `cpn ${name}${argument ? ` ${argument.usage}` : ''}`);
  const width = Math.max(...shapes.map((shape) => shape.length));
  note(members.map(({ summary }, at) => `  ${shapes[at]?.padEnd(width)}  ${dim(summary)}`).join('\n'));
}

function describeBeginning(links: readonly string[] | null): string {
  const head = `${bold('cpn')} joins this host to a private network over WireGuard.`;
  if (links !== null && links.length > 0) {
    return `${head}\n\nThis host has joined as ${links.join(', ')}. To see its status, type:\n\n  cpn status`;
  }
  const what = links === null ? 'To join a network' : 'This host has not joined a network yet. To join one';
  return [
    `${head}\n`,
    `${what}, save the`,
    'enrolment key from your admin in a file, and type:\n',
    `  ${joinExample}\n`,
    'To run your own control plane, see "cpn help control-plane serve".',
  ].join('\n');
}

/** Null where this user may not read the state. */
async function findJoined(environment: NodeJS.ProcessEnv): Promise<readonly string[] | null> {
  try {
    return await listInterfaces(environment);
  } catch {
    return null;
  }
}
