/**
 * True for root, for users of services (below UID_MIN of login.defs(5)) and for those that systemd makes for a service while it runs
 * (DynamicUser= in systemd.exec(5)). The user 65534 is none: many programs share it.
 */
export function isSystemUser(user: number): boolean {
  return user < 1000 || (user >= 61_184 && user <= 65_519);
}
