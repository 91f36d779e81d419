import { onTestFinished } from 'vitest';
import type { OidcSettings } from '../../../src/control-plane/domain/single-sign-on.ts';
import type { ServeOptions } from '../../../src/control-plane/serve.ts';
import { closePlane, openPlane, type Plane } from '../harness.ts';
import { findPort, path, settingsFor } from './browser.ts';
import { startProvider, type TestProvider } from './provider.ts';

export interface Office {
  readonly plane: Plane;
  readonly provider: TestProvider;
  /** Moves the clock of the control plane, but not of the issuer. */
  advance(ms: number): void;
}

/** A control plane with an issuer. Its clock runs, as that of the issuer does. */
export async function openOffice({
  settings = {},
  ...options
}: Partial<ServeOptions> & { settings?: Partial<OidcSettings> } = {}): Promise<Office> {
  const port = options.port ?? (await findPort());
  const provider = await startProvider(`http://127.0.0.1:${port}${path}/callback`);
  onTestFinished(provider.stop);
  let ahead = 0;
  const plane = await openPlane({
    port,
    publicUrls: [new URL(`http://127.0.0.1:${port}/`)],
    oidc: settingsFor(provider.url, settings),
    now: () => new Date(Date.now() + ahead),
    steadyNow: () => Date.now() + ahead,
    refreshPauseMs: 50,
    ...options,
  });
  onTestFinished(() => closePlane(plane));
  return {
    plane,
    provider,
    advance: (ms) => {
      ahead += ms;
    },
  };
}
