import { WrongUsage } from '../../core/errors/index.ts';
import { exitCodes } from '../exit-code.ts';
import { apiFlags, jsonFlag, yesFlag } from '../input/flags.ts';
import { hasTerminal } from '../input/password.ts';
import { note } from '../output/output.ts';
import type { Command } from '../parse/command.ts';
import { applyFlags, applyRules, readConfirmWithin } from '../rules/apply-rules.ts';
import { networkFlag, openRuledNetwork, rulesNetwork, toFileRules } from '../rules/open-rules.ts';
import { openRulesEditor } from '../rules/rules-editor.ts';

export const applyRulesFile: Command = {
  name: 'rules apply',
  argument: { usage: '<file>', summary: 'YAML or JSON file, or - for standard input' },
  summary: 'Replace the rules of a network; shows first who gains and who loses what',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    ...yesFlag,
    ...networkFlag,
    'dry-run': { kind: 'switch', summary: 'show the effects, run the tests, and change nothing' },
    ...applyFlags,
  },
  examples: [
    'cpn rules apply rules.yaml --dry-run',
    'cpn rules apply rules.yaml --network office --confirm-within 60s',
  ],
  async run(input) {
    readConfirmWithin(input);
    const { readRulesFile } = await import('../rules/rules-file.ts');
    const { rules: wanted, at } = await readRulesFile(input.argument('file') ?? '');
    const { service, network } = await openRuledNetwork(input, input.text('network'));
    const { rules: current, etag } = await service.readRules(network);
    return applyRules(input, { service, network, current, etag, wanted, at }, input.switch('dry-run'));
  },
};

export const editRules: Command = {
  name: 'rules edit',
  argument: rulesNetwork,
  summary: 'Edit the rules of a network in VISUAL, EDITOR or vi, then apply them',
  flags: { ...apiFlags, ...jsonFlag, ...yesFlag, ...applyFlags },
  examples: ['cpn rules edit', 'cpn rules edit office --confirm-within 60s'],
  async run(input) {
    readConfirmWithin(input);
    if (!hasTerminal())
      throw new WrongUsage('an editor needs a terminal; use "cpn rules show --yaml" and "cpn rules apply FILE"');
    const { formatRules, parseRules } = await import('../rules/rules-file.ts');
    const { service, network } = await openRuledNetwork(input, input.argument('network'));
    const { rules: current, etag } = await service.readRules(network);
    const before = formatRules(toFileRules(current), help);
    const editor = await openRulesEditor(input.environment, before);
    let isDone = false;
    try {
      const text = await editor.edit();
      if (text === before) {
        note('nothing was changed');
        isDone = true;
        return exitCodes.done;
      }
      const { rules: wanted, at } = parseRules(text, editor.path);
      const exitCode = await applyRules(input, { service, network, current, etag, wanted, at });
      isDone = exitCode === exitCodes.done;
      return exitCode;
    } finally {
      await editor.close(isDone);
    }
  },
};

const help = ` Who may reach what. In a closed network, what no rule allows is denied.
 Selectors: peer:NAME, tag:NAME, route:CIDR, cidr:CIDR (inside a route), any.
 Protocols: any, tcp, udp, icmp. Ports, such as 22 or 8000-8080: those of the destination.`;
