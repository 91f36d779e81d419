import { accept } from '../commands/accept.ts';
import { api } from '../commands/api.ts';
import { audit } from '../commands/audit.ts';
import { completionOf } from '../commands/completion.ts';
import { backUpControlPlane, resetOwner, serveControlPlane } from '../commands/control-plane.ts';
import { debugBundle } from '../commands/debug.ts';
import { doctor } from '../commands/doctor.ts';
import { down } from '../commands/down.ts';
import { drain } from '../commands/drain.ts';
import { explain } from '../commands/explain.ts';
import { exportTunnel } from '../commands/export.ts';
import { join } from '../commands/join.ts';
import { createKey, listKeys, revokeKey } from '../commands/key.ts';
import { leave } from '../commands/leave.ts';
import { login } from '../commands/login.ts';
import { createNetwork, listNetworks, showNetwork } from '../commands/network.ts';
import { deleteNetwork, updateNetwork } from '../commands/network-change.ts';
import { listPeers, removePeer, updatePeer } from '../commands/peer.ts';
import { resumePeer, suspendPeer } from '../commands/peer-suspension.ts';
import { plan } from '../commands/plan.ts';
import { reconcile } from '../commands/reconcile.ts';
import { rotateKey } from '../commands/rotate-key.ts';
import { run } from '../commands/run.ts';
import { logout, whoami } from '../commands/session.ts';
import { set } from '../commands/set.ts';
import { status } from '../commands/status.ts';
import { createToken, listTokens, revokeToken } from '../commands/token.ts';
import { up } from '../commands/up.ts';
import { changePassword, createUser, listUsers, removeUser, updateUser } from '../commands/user.ts';
import { wait } from '../commands/wait.ts';
import type { Command } from './command.ts';

/** Every command there is, in the order in which help lists them. */
export const commands: readonly Command[] = [
  join,
  status,
  wait,
  explain,
  doctor,
  debugBundle,
  plan,
  reconcile,
  run,
  up,
  down,
  set,
  drain,
  rotateKey,
  accept,
  leave,
  exportTunnel,
  login,
  whoami,
  logout,
  listNetworks,
  createNetwork,
  showNetwork,
  updateNetwork,
  deleteNetwork,
  createKey,
  listKeys,
  revokeKey,
  listPeers,
  updatePeer,
  suspendPeer,
  resumePeer,
  removePeer,
  listUsers,
  createUser,
  updateUser,
  changePassword,
  removeUser,
  listTokens,
  createToken,
  revokeToken,
  audit,
  api,
  serveControlPlane,
  backUpControlPlane,
  resetOwner,
  completionOf(() => commands),
];
