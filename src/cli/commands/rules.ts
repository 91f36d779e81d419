import { WrongUsage } from '../../core/errors/index.ts';
import { tryParseAddress } from '../../core/net/cidr.ts';
import { exitCodes } from '../exit-code.ts';
import { apiFlags, jsonFlag } from '../input/flags.ts';
import { type Input, parseChoice } from '../input/input.ts';
import { note, print, printJson, warn } from '../output/output.ts';
import type { Command } from '../parse/command.ts';
import { confirmCommand, locateRefusal } from '../rules/apply-rules.ts';
import { networkFlag, openRuledNetwork, rulesNetwork, toFileRules } from '../rules/open-rules.ts';
import { describeTests } from '../rules/show-preview.ts';
import { describeDecision, describeRules } from '../rules/show-rules.ts';

export const showRules: Command = {
  name: 'rules show',
  argument: rulesNetwork,
  summary: 'Show who may reach what in a network, and what enforces it',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    yaml: { kind: 'switch', summary: 'print a file for "cpn rules apply", and nothing else' },
    all: { kind: 'switch', summary: 'show for every peer what enforces the rules' },
  },
  examples: ['cpn rules show office', 'cpn rules show office --yaml >rules.yaml'],
  async run(input) {
    if (input.switch('json') && input.switch('yaml')) throw new WrongUsage('--json and --yaml exclude each other');
    const { service, network } = await openRuledNetwork(input, input.argument('network'));
    const { rules } = await service.readRules(network);
    if (input.switch('json')) printJson(rules);
    else if (input.switch('yaml')) {
      const { formatRules } = await import('../rules/rules-file.ts');
      print(formatRules(toFileRules(rules)).trimEnd());
    } else {
      print(describeRules(rules, input.switch('all')));
      if (rules.confirm_until !== undefined)
        warn(`the earlier rules return at ${rules.confirm_until}; to keep these, type: ${confirmCommand(network)}`);
    }
    return exitCodes.done;
  },
};

export const testRules: Command = {
  name: 'rules test',
  argument: {
    usage: '[file]',
    summary: 'YAML or JSON file, or - for standard input; default: the rules of the network',
  },
  summary: 'Run the tests of rules; changes nothing',
  flags: { ...apiFlags, ...jsonFlag, ...networkFlag },
  examples: ['cpn rules test', 'cpn rules test rules.yaml --network office'],
  async run(input) {
    const file = input.argument('file');
    const given = file === undefined ? null : await (await import('../rules/rules-file.ts')).readRulesFile(file);
    const { service, network } = await openRuledNetwork(input, input.text('network'));
    const { tests } =
      given === null
        ? await service.previewRules(network, toFileRules((await service.readRules(network)).rules))
        : await locateRefusal(given.at, service.previewRules(network, given.rules));
    if (input.switch('json')) printJson({ tests });
    else if (tests.length === 0) note('there is no test');
    else print(describeTests(tests));
    return tests.every(({ passed }) => passed) ? exitCodes.done : exitCodes.failed;
  },
};

const protocols = ['tcp', 'udp', 'icmp'] as const;

export const explainRules: Command = {
  name: 'rules why',
  argument: {
    usage: '<from> <to> [port]',
    summary: {
      from: 'peer, address, or selector such as tag:web',
      to: 'peer, address, or selector',
      port: 'destination port; default: all ports',
    },
  },
  summary: 'Show whether one end reaches another, and which rule decides',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    ...networkFlag,
    protocol: { kind: 'text', value: 'PROTOCOL', summary: 'of the connection', byDefault: 'tcp', choices: protocols },
    check: { kind: 'switch', summary: 'exit with 3 if it is denied' },
  },
  examples: ['cpn rules why web-1 db 5432', 'cpn rules why laptop 192.168.50.7 443 --check'],
  async run(input) {
    const protocol = parseChoice(input.nameOf('protocol'), input.text('protocol') ?? 'tcp', protocols);
    const port = readPort(input, protocol);
    const [from, to] = [toSelector(input.argument('from') ?? ''), toSelector(input.argument('to') ?? '')];
    const { service, network } = await openRuledNetwork(input, input.text('network'));
    const decision = await service.explainRules(network, { from, to, protocol, ...(port !== null && { port }) });
    if (input.switch('json')) printJson(decision);
    else print(describeDecision(decision));
    return input.switch('check') && decision.verdict === 'deny' ? exitCodes.pending : exitCodes.done;
  },
};

function readPort(input: Input, protocol: string): number | null {
  const text = input.argument('port');
  if (text === undefined) return null;
  if (protocol === 'icmp') throw new WrongUsage('icmp has no ports; leave the port out');
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535)
    throw new WrongUsage(`the port ${JSON.stringify(text)} is not a number from 1 to 65535`);
  return port;
}

const selectorForms = /^(any$|(peer|tag|route|cidr|gone):)/;

/** A name without a form is that of a peer. */
function toSelector(text: string): string {
  return selectorForms.test(text) || tryParseAddress(text) !== null ? text : `peer:${text}`;
}

export const confirmRules: Command = {
  name: 'rules confirm',
  argument: rulesNetwork,
  summary: 'Keep rules that were applied with --confirm-within',
  flags: { ...apiFlags, ...jsonFlag },
  examples: ['cpn rules confirm office'],
  async run(input) {
    const { service, network } = await openRuledNetwork(input, input.argument('network'));
    const { rules: before } = await service.readRules(network);
    // It also refuses rules that were not confirmed in time.
    const rules = await service.confirmRules(network);
    if (input.switch('json')) printJson(rules);
    else if (before.confirm_until === undefined) note('nothing was changed: no rules wait for a confirmation');
    else note('confirmed the rules');
    return exitCodes.done;
  },
};
