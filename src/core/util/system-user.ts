/**
 * True for root, for service users (below UID_MIN of login.defs(5)), and for dynamic users of
 * systemd (DynamicUser= in systemd.exec(5)). False for user 65534, which many programs share.
 */
export function isSystemUser(user: number): boolean {
  return user < 1000 || (user >= 61_184 && user <= 65_519);
}
