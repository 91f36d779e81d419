import { listInterfaces } from '../context.ts';
import { type Command, groups } from '../parse/command.ts';
import { bold, dim, note, print } from './output.ts';

/** Commands and groups by topic, in the order in which a new user needs them. */
export const topics: Readonly<Record<string, readonly string[]>> = {
  'this host': ['join', 'run', 'up', 'down', 'set', 'rotate-key', 'accept', 'drain', 'leave'],
  diagnosis: ['status', 'wait', 'explain', 'doctor', 'plan', 'reconcile', 'events', 'debug'],
  phones: ['export'],
  admin: ['login', 'whoami', 'logout', 'network', 'key', 'peer', 'rules', 'audit', 'api'],
  users: ['user', 'token'],
  server: ['control-plane'],
  shell: ['completion'],
};

type ScreenRow = readonly [left: string, right: string];

const joinExample = 'cpn join file:key --api https://cp.example.net';

export const programExamples: readonly ScreenRow[] = [
  [joinExample, 'join a network with the key in a file'],
  ['cpn status', 'peers, routes and drift'],
  ['cpn help join', 'flags and examples of a command'],
];

/** Shows the first step, and the commands by topic. It fits 24 rows of 80 columns. */
export async function showStart(environment: NodeJS.ProcessEnv): Promise<void> {
  const links = await findJoined(environment);
  const width = Math.max(...Object.keys(topics).map((topic) => topic.length));
  const lists = Object.entries(topics).map(([topic, names]) => `${bold(topic.padEnd(width))}  ${names.join(', ')}`);
  const help = '"cpn --help" lists the commands; "cpn help join" shows flags and examples.';
  note([describeBeginning(links), lists.join('\n'), help].join('\n\n'));
}

/** Shows the screen of `cpn --help` without yargs, which would double the time. */
export function showHelp(commands: readonly Command[]): void {
  const columns = helpColumns();
  const rowOf = (name: string): ScreenRow => {
    const command = commands.find((each) => each.name === name);
    return command ? [shapeOf(command), command.summary] : [name, groups[name] ?? ''];
  };
  const lists: [string, readonly ScreenRow[]][] = [
    ...Object.entries(topics).map(([topic, names]): [string, readonly ScreenRow[]] => [topic, names.map(rowOf)]),
    ['flags of every command', commonFlags],
    ['examples', programExamples],
  ];
  const texts = lists.map(([title, rows]) => `${bold(`${title}:`)}\n${list(rows, columns)}`);
  print([describeProgram(), 'usage: cpn COMMAND [ARGUMENT] [--FLAG]', ...texts].join('\n\n'));
}

/** The width of help: that of the terminal, at most 110. A serial console reports 0. */
export function helpColumns(): number {
  return Math.min(110, process.stdout.columns || 110);
}

const commonFlags: readonly ScreenRow[] = [
  ['-h, --help', 'Show flags and examples'],
  ['--version', 'Show the version'],
];

export function showGroup(group: string, commands: readonly Command[]): void {
  const members = commands.filter(({ name }) => name.startsWith(`${group} `));
  note(
    list(
      members.map((command) => [`cpn ${shapeOf(command)}`, dim(command.summary)]),
      Number.POSITIVE_INFINITY,
    ),
  );
}

function shapeOf({ name, argument }: Command): string {
  return argument ? `${name} ${argument.usage}` : name;
}

/** Two columns. The second wraps at the width of the screen. */
function list(rows: readonly ScreenRow[], columns: number): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  const room = Math.max(20, columns - width - 4);
  const lines = rows.flatMap(([left, right]) =>
    wrap(right, room).map((line, at) => `  ${(at === 0 ? left : '').padEnd(width)}  ${line}`),
  );
  return lines.join('\n');
}

function wrap(text: string, room: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > room) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

const describeProgram = () => `${bold('cpn')} joins this host to a private network over WireGuard.`;

function describeBeginning(links: readonly string[] | null): string {
  if (links !== null && links.length > 0) {
    return `${describeProgram()}\n\nThis host has joined as ${links.join(', ')}. To see its status, type:\n\n  cpn status`;
  }
  const what = links === null ? 'To join a network' : 'This host has not joined a network yet. To join one';
  return [
    `${describeProgram()}\n`,
    `${what}, save the`,
    'enrolment key from your admin in a file, and type:\n',
    `  ${joinExample}\n`,
    'To run your own control plane, see "cpn help control-plane serve".',
  ].join('\n');
}

/** Null if this user may not read the state. */
async function findJoined(environment: NodeJS.ProcessEnv): Promise<readonly string[] | null> {
  try {
    return await listInterfaces(environment);
  } catch {
    return null;
  }
}
