/** The path of the page, which the cookie is for. */
export const ownPath = () => new URL('.', location.href).pathname;

/** Where storage is turned off, a session ends with its page. */
let unstored: string | null = null;

const nameInStorage = () => `cpn session ${ownPath()}`;

/**
 * The half of the session that the page keeps; null without one. All windows of this origin share it. Pages of other ports have the
 * cookie, and not this.
 */
export function readSessionKey(): string | null {
  try {
    return localStorage.getItem(nameInStorage()) ?? unstored;
  } catch {
    return unstored;
  }
}

export function storeSessionKey(key: string | null): void {
  unstored = key;
  try {
    if (key === null) localStorage.removeItem(nameInStorage());
    else localStorage.setItem(nameInStorage(), key);
  } catch {
    // Kept in this page alone.
  }
}
