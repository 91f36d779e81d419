declare const __CPN_VERSION__: string | undefined;

/** The version of this build; `dev` when it runs from its sources. */
export const version = typeof __CPN_VERSION__ === 'undefined' ? 'dev' : __CPN_VERSION__;
