import { styleText } from 'node:util';
import { encode, renderUnicodeCompact } from 'uqr';
import { WrongUsage } from '../../../core/errors/index.ts';

/** The maximum bytes of a code, at the lowest error correction (ISO/IEC 18004, version 40-L). */
const mostBytes = 2953;

/** Light modules around a code, which a camera needs to find it. */
const border = 2;

/** Draws half blocks, dark on light. @throws WrongUsage if the code does not fit the columns */
export function drawCode(text: string, columns: number): string {
  const bytes = Buffer.byteLength(text);
  if (bytes > mostBytes) {
    throw new WrongUsage(`the export has ${bytes} bytes, more than a QR code holds (${mostBytes}); use --output FILE`);
  }
  const { size } = encode(text, { border });
  if (size > columns) {
    throw new WrongUsage(
      `the QR code is ${size} columns wide, this terminal ${columns}; widen it, use a smaller font, or use --output FILE`,
    );
  }
  const rows = renderUnicodeCompact(text, { border }).split('\n');
  // The light modules are blocks, so that the terminal's colours do not matter.
  return rows.map((row) => styleText(['whiteBright', 'bgBlack'], row)).join('\n');
}
