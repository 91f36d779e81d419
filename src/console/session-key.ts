/** The path of the page and its cookie. */
export const ownPath = () => new URL('.', location.href).pathname;

/** Without storage, a session ends with its page. */
let unstored: string | null = null;

const nameInStorage = () => `cpn session ${ownPath()}`;

/**
 * Returns the half of the session that the page keeps, or null. All windows of this origin share
 * it. Pages of other ports get the cookie, but not this half.
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
    // Kept only in this page.
  }
}
