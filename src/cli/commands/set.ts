import type { SecretLosses } from '../../app/networks/option-changes.ts';
import { isDefaultRoute } from '../../core/net/cidr.ts';
import { listNames } from '../../core/util/list-names.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { confirm } from '../input/confirm.ts';
import { jsonFlag, yesFlag } from '../input/flags.ts';
import { warn } from '../output/output.ts';
import { showPass } from '../output/show-pass.ts';
import type { Command } from '../parse/command.ts';
import { changeFlags, readChanges } from '../parse/option-changes.ts';
import { confirmFlag, readConfirmation } from '../pass-command.ts';

export const set: Command = {
  name: 'set',
  argument: {
    usage: '[network]',
    summary: 'interface, or id or name of a network; optional with one network',
  },
  summary: 'Change the options of a joined network and apply them',
  flags: {
    ...jsonFlag,
    ...yesFlag,
    ...changeFlags,
    ...confirmFlag,
    'dry-run': {
      kind: 'switch',
      summary: 'show what would change, without changing it; exits with 3 when there are changes',
    },
  },
  examples: [
    'cpn set --mtu 1380',
    'cpn set office --endpoint 203.0.113.22:51821 --dry-run',
    'cpn set --api https://cp.example.com',
  ],
  async run(input) {
    const changes = await readChanges(input);
    const { findSecretLosses } = await import('../../app/networks/option-changes.ts');
    const { planOptions, selectOne, setOptions } = await import('../../app/options/set-options.ts');
    const tools = await openTools(input);
    const fullTunnel = changes.allowRoutes.some(isDefaultRoute);
    await tools.host.check({ firewall: false, fullTunnel, maps: changes.addMaps.length > 0 });
    const network = input.argument('network');
    const isDry = input.switch('dry-run');
    const losses = findSecretLosses(await selectOne(tools, network), changes);
    if (losses !== null && isDry) warn(describeLosses(losses));
    if (losses !== null && !isDry && !(await confirm(`${describeLosses(losses)} Change it anyway?`, input)))
      return exitCodes.failed;
    const report = isDry
      ? await planOptions(tools, network, changes)
      : await setOptions(tools, network, changes, readConfirmation(input));
    return showPass([report], {
      json: input.switch('json'),
      nothing: isDry ? 'would not change' : 'has the new options; nothing else changed',
      exitCode: isDry ? exitCodes.pending : exitCodes.done,
    });
  },
};

/** The source of the three minutes: REJECT_AFTER_TIME of WireGuard ends a session after 180 s. */
function describeLosses({ interface: link, peers, isRemoval }: SecretLosses): string {
  const file = isRemoval ? 'none' : 'PATH';
  const remedy = `cpn set --network-secret-file ${file}`;
  const secret = isRemoval ? 'none either' : 'the same network secret';
  return `${link} loses ${listNames(peers)} within 3 minutes, and SSH through the tunnel too, unless they have ${secret} by then: type "${remedy}" there.`;
}
