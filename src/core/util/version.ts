declare const __CPN_VERSION__: string | undefined;

/** The version of this build. `dev` if it runs from source. */
export const version = typeof __CPN_VERSION__ === 'undefined' ? 'dev' : __CPN_VERSION__;
