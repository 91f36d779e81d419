import { encode } from 'uqr';

/** The widest code without border that a camera reads from a screen at arm's length: version 25. */
const mostModules = 117;
/** The light modules around a code that a camera needs to find it. */
export const codeBorder = 4;

/** The pixels of a module: cameras need four. */
export function findModulePixels(modules: number): number {
  return modules <= 73 ? 5 : 4;
}

/** True if a text fits in a code that a camera reads. */
export function fitsCode(text: string): boolean {
  try {
    return encode(text, { border: 0 }).size <= mostModules;
  } catch {
    return false;
  }
}
