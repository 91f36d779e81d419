import { MissingTool } from '../../core/errors.ts';
import { clearSocket } from '../control-socket.ts';
import type { Run } from '../run.ts';

/** Programs that are a WireGuard interface in user space, in the order in which they are tried. */
const implementations = [
  { tool: 'wireguard-go', args: [] },
  // Otherwise it becomes the user who logged in, and gives up where there is none, as under systemd.
  { tool: 'boringtun-cli', args: ['--disable-drop-privileges'] },
] as const;

/** Makes a WireGuard interface in user space. It lives on when this process ends. */
export async function startUserspace(run: Run, link: string): Promise<void> {
  await clearSocket(link);
  for (const { tool, args } of implementations) {
    try {
      await run(tool, [...args, link], { daemon: true });
      return;
    } catch (error) {
      if (!(error instanceof MissingTool)) throw error;
    }
  }
  throw new MissingTool(
    'wireguard-go',
    "and this kernel has no WireGuard; boot a kernel with the wireguard module, apt install wireguard-go, or install Cloudflare's boringtun-cli into /usr/local/bin",
  );
}
