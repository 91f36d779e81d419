import { encode } from 'uqr';

/** The widest code that a camera reads from a screen at arm's length, in modules without the border: version 25. */
const mostModules = 117;
/** Light modules around a code, without which a camera does not find it. */
export const codeBorder = 4;

/** The pixels of a module: cameras need four. */
export function findModulePixels(modules: number): number {
  return modules <= 73 ? 5 : 4;
}

/** Whether a text fits a code that a camera reads. */
export function fitsCode(text: string): boolean {
  try {
    return encode(text, { border: 0 }).size <= mostModules;
  } catch {
    return false;
  }
}
