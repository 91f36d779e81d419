import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { CpnError } from '../../src/core/errors/index.ts';
import { describeDrop } from '../../src/core/forward/foreign/describe-drop.ts';
import { findForwardDrops } from '../../src/core/forward/foreign/find-drops.ts';
import type { ForwardPath } from '../../src/core/forward/foreign/path.ts';
import { parseProcess } from '../../src/host/linux/conflicting-processes.ts';
import { parseResolvers } from '../../src/host/linux/dns/settings.ts';
import { describeFailedLines } from '../../src/host/linux/ip/batch.ts';
import { parseRouteGet } from '../../src/host/linux/ip/route-get.ts';
import { parseShown } from '../../src/host/linux/ip/show.ts';
import { isFirewallLossReport, parseFirewallEvent } from '../../src/host/linux/monitor/events.ts';
import { isLossReport, parseEvent } from '../../src/host/linux/monitor/parse-event.ts';
import { parseFilterTables } from '../../src/host/linux/nft/filter-tables.ts';
import { parseLegacyTables } from '../../src/host/linux/nft/legacy-tables.ts';
import { parseRules } from '../../src/host/linux/nft/own-table.ts';
import { mayAdminister } from '../../src/host/linux/process-files.ts';
import { parseSshClients } from '../../src/host/linux/ssh-clients.ts';
import { gatherUnderlay } from '../../src/host/linux/underlay.ts';
import { splitLines } from '../../src/host/process/shell-pool.ts';
import { readAddress } from '../../src/host/read-address.ts';
import { parseDump } from '../../src/host/wireguard/dump.ts';
import { digestDevices } from '../../src/host/wireguard/watch-devices.ts';
import { prefix } from '../core/samples.ts';
import { dumpOf, dumps } from './dumps.ts';
import { fuzz } from './fuzz.ts';
import { mutatedJson } from './hostile-json.ts';
import { mutated, pumped } from './hostile-texts.ts';
import * as printed from './recorded-outputs.ts';
import { bounded, unlessRefused } from './time-bound.ts';

const survive = <Result>(parse: () => Result) => bounded(() => unlessRefused([CpnError], parse));

fuzz('what wg dumps is read as it was meant', 150, [dumps], (device) => {
  const read = parseDump(dumpOf(device));
  expect(dumpOf(read)).toBe(dumpOf(device));
  expect(digestDevices(dumpOf(device, 'cpn0')).size).toBe(1);
});

fuzz('any dump is read or refused', 500, [mutated(dumps.map((device) => dumpOf(device)))], (text) => {
  const device = survive(() => parseDump(text));
  survive(() => digestDevices(text));
  for (const { endpoint, allowedIps } of device?.peers ?? []) {
    if (endpoint) expect(readAddress(endpoint.host)).toBe(endpoint.host);
    for (const each of allowedIps) expect(each).toMatch(/^[0-9a-f.:]+\/\d{1,3}$/);
  }
});

const shown = fc
  .tuple(
    ...[printed.links, printed.routes4, printed.routes6, printed.rules].map((list) =>
      mutatedJson(fc.constant(list), printed.names, 2).map((value) => JSON.stringify(value)),
    ),
  )
  .map((lines) => lines.join('\n'));

fuzz('whatever ip shows is read or refused', 500, [fc.oneof(shown, mutated(shown))], (text) => {
  const read = survive(() => parseShown(text));
  if (read === null) return;
  const around = bounded(() => gatherUnderlay('cpn0', read));
  for (const each of [...around.addresses, ...around.gateways]) expect(readAddress(each)).toBe(each);
  for (const rule of read.rules) expect(Number.isInteger(rule.priority)).toBe(true);
});

const got = mutatedJson(fc.constant([printed.way]), printed.names).map((value) => JSON.stringify(value));

fuzz(
  'any answer about a route is read or refused',
  500,
  [mutated(fc.tuple(got, got).map((lines) => lines.join('\n')))],
  (text) => {
    const route = survive(() => parseRouteGet(text));
    if (route && route.link !== null && route.gateway !== null) expect(readAddress(route.gateway)).toBe(route.gateway);
  },
);

fuzz(
  'lines that failed are named whatever ip prints',
  250,
  [mutated(fc.constantFrom('Command failed -:2', 'x\nCommand failed -:99999999999')), fc.array(fc.string())],
  (stderr, lines) => {
    survive(() => describeFailedLines(stderr, lines));
  },
);

const readRecorded = (ending: string) =>
  readdirSync(printed.rulesets)
    .filter((file) => file.endsWith(ending))
    .map((file) => readFileSync(join(printed.rulesets, file), 'utf8'));
const rulesets = readRecorded('.ruleset').filter((text) => text.length < 8000);
const paths: ForwardPath[] = (['new', 'established'] as const).map((state) => ({
  ...{ iif: 'cpn0', oif: 'eth1', from: prefix('10.77.0.0/24'), to: prefix('192.168.50.0/24'), state },
}));

const judged = (text: string) => {
  survive(() => parseRules(text));
  const found = survive(() => findForwardDrops(parseFilterTables(text), 'cpn0', paths).map(describeDrop));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  for (const words of found ?? []) expect(words).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/);
};

fuzz('any ruleset of nft is read or refused', 200, [mutated(fc.constantFrom(...rulesets))], judged);
fuzz(
  'any output of iptables-legacy-save is read',
  200,
  [mutated(fc.constantFrom(...readRecorded('.save')))],
  (text) => {
    survive(() => findForwardDrops(parseLegacyTables(text), 'cpn0', paths).map(describeDrop));
  },
);
fuzz(
  'any ruleset in JSON is read or refused',
  200,
  [
    mutatedJson(fc.constantFrom(...rulesets.map((text): unknown => JSON.parse(text))), printed.statements, 6).map(
      (value) => JSON.stringify(value),
    ),
  ],
  judged,
);

fuzz(
  'any line of ip monitor and of nft monitor is an event or none',
  1000,
  [mutated(fc.constantFrom(...printed.events))],
  (line) => {
    for (const event of [survive(() => parseEvent(line)), survive(() => parseFirewallEvent(line))]) {
      if (event?.link) expect(event.link).toMatch(/^[^\s:\p{Cc}\p{Cf}]{1,15}$/u);
    }
    survive(() => isLossReport(line));
    survive(() => isFirewallLossReport(line));
  },
);

fuzz(
  'lines are split alike, in whatever pieces they come',
  500,
  [fc.array(fc.string({ unit: fc.constantFrom('a', '\n', '\r', '💻'), maxLength: 12 })), fc.nat(8)],
  (pieces, most) => {
    const lines: (string | null)[] = [];
    const read = splitLines(most, (line) => lines.push(line));
    for (const piece of pieces) read(piece);
    const [rest = '', ...whole] = pieces.join('').split('\n').reverse();
    const expected = whole.reverse().map((line) => (line.length > most ? null : line));
    expect(lines).toEqual(rest.length > most ? [...expected, null] : expected);
  },
);

fuzz(
  'whatever /proc and resolv.conf hold, addresses come out of it',
  1000,
  [
    mutated(fc.constantFrom(...printed.files)),
    fc.option(mutated(fc.constant('203.0.113.7 50222 192.0.2.1 22')), { nil: undefined }),
  ],
  (text, connection) => {
    const found = [
      ...(survive(() => parseSshClients(text, connection)) ?? []).flatMap(({ address, local }) => [
        address,
        local ?? address,
      ]),
      ...(survive(() => parseResolvers(text)) ?? []),
    ];
    for (const address of found) expect(readAddress(address)).toBe(address);
    const process = survive(() => parseProcess(text, text));
    if (process) expect(Number.isInteger(process.pid)).toBe(true);
    survive(() => mayAdminister(text));
  },
);

fuzz('no text of tools is long enough to hang on', 60, [pumped(printed.words)], (text) => {
  for (const parse of [parseDump, digestDevices, parseShown, parseRouteGet, parseRules, parseFilterTables])
    survive(() => parse(text));
  for (const parse of [parseEvent, parseFirewallEvent, parseSshClients, parseResolvers, mayAdminister])
    survive(() => parse(text));
  survive(() => parseProcess(text, text));
  survive(() => describeFailedLines(text, [text]));
  survive(() => splitLines(100, () => {})(text));
});
