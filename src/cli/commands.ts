import type { Command } from './command.ts';
import { serveControlPlane } from './commands/control-plane.ts';
import { down } from './commands/down.ts';
import { join } from './commands/join.ts';
import { createKey } from './commands/key.ts';
import { leave } from './commands/leave.ts';
import { login } from './commands/login.ts';
import { createNetwork, deleteNetwork, listNetworks, showNetwork } from './commands/network.ts';
import { removePeer } from './commands/peer.ts';
import { plan } from './commands/plan.ts';
import { reconcile } from './commands/reconcile.ts';
import { run } from './commands/run.ts';
import { logout, whoami } from './commands/session.ts';
import { status } from './commands/status.ts';
import { up } from './commands/up.ts';
import { wait } from './commands/wait.ts';

/** Every command there is, in the order in which help lists them. */
export const commands: readonly Command[] = [
  join,
  status,
  wait,
  plan,
  reconcile,
  run,
  up,
  down,
  leave,
  login,
  whoami,
  logout,
  listNetworks,
  createNetwork,
  showNetwork,
  deleteNetwork,
  createKey,
  removePeer,
  serveControlPlane,
];
