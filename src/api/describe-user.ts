import { readFileSync, readlinkSync } from 'node:fs';

/** A user for a message: the uid, and the name where this host has one for it. */
export function describeUser(user: number): string {
  const name = findAccount(user) ?? findDynamicUser(user);
  return name === null ? `user ${user}` : `user ${user} (${name})`;
}

function findAccount(user: number): string | null {
  try {
    const accounts = readFileSync('/etc/passwd', 'latin1');
    return new RegExp(`^([A-Za-z0-9_.-]{1,64}):[^:]*:${user}:`, 'm').exec(accounts)?.[1] ?? null;
  } catch {
    return null;
  }
}

/** systemd links the uid of a unit with `DynamicUser=` to its name. */
function findDynamicUser(user: number): string | null {
  try {
    const name = readlinkSync(`/run/systemd/dynamic-uid/direct:${user}`);
    return /^[A-Za-z0-9_.-]{1,64}$/.test(name) ? name : null;
  } catch {
    return null;
  }
}
