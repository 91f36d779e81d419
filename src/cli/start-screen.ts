import type { Command } from './command.ts';
import { openTools } from './context.ts';
import { Input } from './input.ts';
import { bold, dim, note } from './output.ts';

/** Commands and groups by what a person wants, in the order in which a newcomer meets them. */
export const topics: Readonly<Record<string, readonly string[]>> = {
  'this host': ['join', 'run', 'up', 'down', 'set', 'rotate-key', 'accept', 'drain', 'leave'],
  'how it is': ['status', 'wait', 'explain', 'doctor', 'plan', 'reconcile', 'debug'],
  'for phones': ['export'],
  'for admins': ['login', 'whoami', 'logout', 'network', 'key', 'peer', 'user', 'token', 'audit', 'api'],
  'to serve': ['control-plane'],
  'your shell': ['completion'],
};

/** Begins a join for whoever was given a key. */
const joinExample = 'cpn join file:key --api https://cp.example.net';

/** What `cpn --help` ends with. */
export const programExamples: readonly (readonly [string, string])[] = [
  [joinExample, 'join a network with the key in a file'],
  ['cpn status', 'how it is'],
  ['cpn help join', 'flags and examples of a command'],
];

/** What `cpn` alone says: where to begin, and the commands by what they are for. It fits into 24 rows of 80 columns. */
export async function showStart(environment: NodeJS.ProcessEnv): Promise<void> {
  const links = await findJoined(environment);
  const width = Math.max(...Object.keys(topics).map((topic) => topic.length));
  const lists = Object.entries(topics).map(([topic, names]) => `${bold(topic.padEnd(width))}  ${names.join(', ')}`);
  const help = '"cpn --help" says what each of them does, "cpn help join" how, with examples.';
  note([describeBeginning(links), lists.join('\n'), help].join('\n\n'));
}

/** What a group alone says: its commands. */
export function showGroup(group: string, commands: readonly Command[]): void {
  const members = commands.filter(({ name }) => name.startsWith(`${group} `));
  const shapes = members.map(({ name, argument }) => `cpn ${name}${argument ? ` ${argument.usage}` : ''}`);
  const width = Math.max(...shapes.map((shape) => shape.length));
  note(members.map(({ summary }, at) => `  ${shapes[at]?.padEnd(width)}  ${dim(summary)}`).join('\n'));
}

function describeBeginning(links: readonly string[] | null): string {
  const head = `${bold('cpn')} joins this host to a private network over WireGuard, and keeps it right.`;
  if (links !== null && links.length > 0) {
    return `${head}\n\nThis host has joined as ${links.join(', ')}. To see how it is, type:\n\n  cpn status`;
  }
  const what = links === null ? 'To join a network' : 'This host has joined no network yet. To join one';
  return [
    `${head}\n`,
    `${what}, put the key that`,
    'an admin of it gave you into a file, and type:\n',
    `  ${joinExample}\n`,
    'Where there is no control plane yet, "cpn help control-plane serve" begins one.',
  ].join('\n');
}

/** Null where that is not for this user to know. */
async function findJoined(environment: NodeJS.ProcessEnv): Promise<readonly string[] | null> {
  try {
    const { store } = await openTools(new Input({}, {}, environment));
    const { states, unreadable } = await store.list();
    return [...states, ...unreadable].map((state) => state.interface);
  } catch {
    return null;
  }
}
