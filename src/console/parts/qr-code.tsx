import type { JSX } from 'preact';
import { encode } from 'uqr';
import { codeBorder, findModulePixels } from '../logic/peers/code-size.ts';

/**
 * A text as a QR code, dark on white in every theme and never scaled down, because cameras need
 * that. The text must fit.
 */
export function QrCode({ label, text }: { readonly label: string; readonly text: string }): JSX.Element {
  const { data, size } = encode(text, { border: codeBorder });
  const path = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ''))).join('');
  const width = size * findModulePixels(size - 2 * codeBorder);
  return (
    <div class="qr">
      <svg
        viewBox={`0 0 ${size} ${size}`}
        width={width}
        height={width}
        role="img"
        aria-label={label}
        shape-rendering="crispEdges"
      >
        <rect width={size} height={size} fill="#fff" />
        <path d={path} fill="#000" />
      </svg>
    </div>
  );
}
