import type { Command } from './command.ts';

/** The module of each command, in the order of the help. Loaded on demand. */
const sources: Readonly<Record<string, () => Promise<Command>>> = {
  join: async () => (await import('../commands/join.ts')).join,
  status: async () => (await import('../commands/status.ts')).status,
  wait: async () => (await import('../commands/wait.ts')).wait,
  explain: async () => (await import('../commands/explain.ts')).explain,
  doctor: async () => (await import('../commands/doctor.ts')).doctor,
  'debug bundle': async () => (await import('../commands/debug.ts')).debugBundle,
  plan: async () => (await import('../commands/plan.ts')).plan,
  reconcile: async () => (await import('../commands/reconcile.ts')).reconcile,
  run: async () => (await import('../commands/run.ts')).run,
  up: async () => (await import('../commands/up.ts')).up,
  down: async () => (await import('../commands/down.ts')).down,
  set: async () => (await import('../commands/set.ts')).set,
  drain: async () => (await import('../commands/drain.ts')).drain,
  'rotate-key': async () => (await import('../commands/rotate-key.ts')).rotateKey,
  accept: async () => (await import('../commands/accept.ts')).accept,
  leave: async () => (await import('../commands/leave.ts')).leave,
  export: async () => (await import('../commands/export.ts')).exportTunnel,
  login: async () => (await import('../commands/login.ts')).login,
  whoami: async () => (await import('../commands/session.ts')).whoami,
  logout: async () => (await import('../commands/session.ts')).logout,
  'network list': async () => (await import('../commands/network.ts')).listNetworks,
  'network create': async () => (await import('../commands/network.ts')).createNetwork,
  'network show': async () => (await import('../commands/network.ts')).showNetwork,
  'network update': async () => (await import('../commands/network-change.ts')).updateNetwork,
  'network delete': async () => (await import('../commands/network-change.ts')).deleteNetwork,
  'key create': async () => (await import('../commands/key.ts')).createKey,
  'key list': async () => (await import('../commands/key.ts')).listKeys,
  'key revoke': async () => (await import('../commands/key.ts')).revokeKey,
  'peer list': async () => (await import('../commands/peer.ts')).listPeers,
  'peer update': async () => (await import('../commands/peer.ts')).updatePeer,
  'peer approve': async () => (await import('../commands/peer-approval.ts')).approvePeer,
  'peer suspend': async () => (await import('../commands/peer-suspension.ts')).suspendPeer,
  'peer resume': async () => (await import('../commands/peer-suspension.ts')).resumePeer,
  'peer remove': async () => (await import('../commands/peer.ts')).removePeer,
  'rules show': async () => (await import('../commands/rules.ts')).showRules,
  'rules apply': async () => (await import('../commands/rules-change.ts')).applyRulesFile,
  'rules edit': async () => (await import('../commands/rules-change.ts')).editRules,
  'rules confirm': async () => (await import('../commands/rules.ts')).confirmRules,
  'rules test': async () => (await import('../commands/rules.ts')).testRules,
  'rules why': async () => (await import('../commands/rules.ts')).explainRules,
  'user list': async () => (await import('../commands/user.ts')).listUsers,
  'user create': async () => (await import('../commands/user.ts')).createUser,
  'user update': async () => (await import('../commands/user.ts')).updateUser,
  'user passwd': async () => (await import('../commands/user.ts')).changePassword,
  'user remove': async () => (await import('../commands/user.ts')).removeUser,
  'user link': async () => (await import('../commands/user.ts')).linkUser,
  'user unlink': async () => (await import('../commands/user.ts')).unlinkUser,
  'user reset-factors': async () => (await import('../commands/user.ts')).resetFactors,
  'token list': async () => (await import('../commands/token.ts')).listTokens,
  'token create': async () => (await import('../commands/token.ts')).createToken,
  'token revoke': async () => (await import('../commands/token.ts')).revokeToken,
  events: async () => (await import('../commands/events.ts')).events,
  audit: async () => (await import('../commands/audit.ts')).audit,
  api: async () => (await import('../commands/api.ts')).api,
  'control-plane serve': async () => (await import('../commands/control-plane.ts')).serveControlPlane,
  'control-plane backup': async () => (await import('../commands/control-plane.ts')).backUpControlPlane,
  'control-plane reset-owner': async () => (await import('../commands/control-plane.ts')).resetOwner,
  completion: async () => (await import('../commands/completion.ts')).completionOf(loadCommands),
};

/** Loads all commands, in the order of the help. */
export function loadCommands(): Promise<readonly Command[]> {
  return Promise.all(Object.values(sources).map((load) => load()));
}

/** Loads the command that the first words name. Loads all commands if they name none. */
export async function loadNamed(argv: readonly string[]): Promise<readonly Command[]> {
  const words = leadingWords(argv);
  const name = [words.slice(0, 2).join(' '), words[0] ?? ''].find((each) => Object.hasOwn(sources, each));
  const load = name === undefined ? undefined : sources[name];
  return load === undefined ? loadCommands() : [await load()];
}

/** The words before the first flag. */
export function leadingWords(argv: readonly string[]): readonly string[] {
  const end = argv.findIndex((word) => word.startsWith('-'));
  return end < 0 ? argv : argv.slice(0, end);
}
