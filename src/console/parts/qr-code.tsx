import type { JSX } from 'preact';
import { encode } from 'uqr';

/** A text as a QR code, dark on white in every theme: cameras need that. */
export function QrCode({ label, text }: { readonly label: string; readonly text: string }): JSX.Element {
  const { data, size } = encode(text, { border: 4 });
  const path = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ''))).join('');
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
