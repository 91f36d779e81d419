import fc from 'fast-check';
import { expect } from 'vitest';
import { formatRules, parseRules } from '../../src/cli/rules/rules-file.ts';
import { InvalidValue, printableLines, WrongUsage } from '../../src/core/errors/index.ts';
import { dropInPrograms } from '../../src/core/host-state/actual.ts';
import { renderDropIns, settingsIn } from '../../src/core/names/drop-in.ts';
import { findBlock, linesOf, renderBlock, replaceBlock } from '../../src/core/names/hosts-block.ts';
import { plan } from '../../src/core/reconcile/plan.ts';
import { parseConfig } from '../../src/core/wg-quick/parse.ts';
import { parseProvidedConfig } from '../../src/core/wg-quick/provided-config.ts';
import { renderBatch } from '../../src/host/linux/ip/batch.ts';
import { renderFirewall } from '../../src/host/linux/nft/own-table.ts';
import { renderDevice } from '../../src/host/wireguard/wg.ts';
import { formatNotes, noNotes, parseNotes } from '../../src/store/notes.ts';
import { formatState, parseState, versionOf } from '../../src/store/state/state-file.ts';
import { bare, network, peer } from '../core/samples.ts';
import { state } from '../store/samples.ts';
import { fuzz } from './fuzz.ts';
import { mutatedJson } from './hostile-json.ts';
import { hostileDesires } from './hostile-maps.ts';
import { hostile, mutated, pumped } from './hostile-texts.ts';
import { bounded, unlessRefused } from './time-bound.ts';

fuzz("nothing that a control plane sends gets into the input of the host's tools", 250, [hostileDesires], (desired) => {
  for (const step of desired === null ? [] : plan(desired, bare, 0)) {
    if (step.do === 'configure-link') for (const line of renderBatch(step)) expect(line).toMatch(/^[\w ./:"-]+$/);
    if (step.do === 'configure-device') expect(renderDevice(step).reveal()).toMatch(/^[\w ./:,+=[\]\n-]+$/);
    if (step.do === 'set-firewall') expect(renderFirewall(step.firewall)).toMatch(/^[\w ./:;,+=!&|(){}"\n-]+$/);
    if (step.do === 'set-hosts') expectOnlyNames(step.block);
  }
  for (const program of dropInPrograms) {
    const texts = desired?.dns ? renderDropIns({ program, folder: '/etc/x' }, 'cpn0', desired.dns) : {};
    for (const text of Object.values(texts)) {
      for (const line of settingsIn(text)) expect(line).toMatch(dropInLine);
    }
  }
});

/** A line of a file for dnsmasq, unbound or macOS. */
const dropInLine =
  /^(server=\/[a-z0-9._-]+\/[\da-f.:]+(#553)?|rebind-domain-ok=\/[a-z0-9._-]+\/|nameserver [\da-f.:]+|port 553|server:|forward-zone:| {2}do-not-query-localhost: no| {2}[a-z-]+: "[a-z0-9._-]+"( transparent)?| {2}forward-addr: [\da-f.:]+(@553)?)$/;

/** Every line has one address, and one name below the program's own domain. */
function expectOnlyNames(block: string): void {
  const [first, ...rest] = block.split('\n');
  expect(first).toBe('# BEGIN cpn cpn0 (written by cpn; edits are lost)');
  expect(rest.slice(-2)).toEqual(['# END cpn cpn0', '']);
  for (const line of rest.slice(0, -2))
    expect(line).toMatch(/^[0-9a-f.:]+ [a-z0-9-]{1,63}\.[a-z0-9-]{1,63}\.cpn\.internal$/);
  expect(linesOf(block)).toHaveLength(rest.length - 2);
}

const someone = peer(1);
const hostsFile =
  '127.0.0.1 localhost\n# BEGIN cpn cpn0 x\n10.77.0.1 a.office.cpn.internal\n# END cpn cpn0\n::1 localhost\n';

fuzz(
  "of a hosts file only the program's block changes, and writing it again changes nothing",
  750,
  [mutated(fc.constantFrom(hostsFile, hostsFile.repeat(2)), 5), fc.array(hostile, { minLength: 1, maxLength: 5 })],
  (text, names) => {
    const block = renderBlock(
      'cpn0',
      network(names.map((name, index) => ({ ...someone, id: index + 1, name }))),
      'office',
    );
    expectOnlyNames(block);
    const { isWhole } = bounded(() => findBlock(text, 'cpn0'));
    const written = bounded(() => replaceBlock(text, 'cpn0', block));
    if (!isWhole) {
      expect(written).toBe(text);
      return;
    }
    expect(findBlock(written, 'cpn0')).toEqual({ block, isWhole: true });
    expect(replaceBlock(written, 'cpn0', block)).toBe(written);
    const [without, cleared] = [replaceBlock(text, 'cpn0', null), replaceBlock(written, 'cpn0', null)];
    expect(cleared).toBe(without);
  },
);

const stateText = formatState(state);
/** The store sets aside any file that it cannot read; no error may hold a part of it. */
const parseOrNull = <Result>(parse: () => Result): Result | null =>
  bounded(() => {
    try {
      return parse();
    } catch (error) {
      expect(error).toBeInstanceOf(Error);
      expect(error).not.toBeInstanceOf(TypeError);
      expect(error).not.toBeInstanceOf(RangeError);
      expect(String(error)).not.toContain(state.keyPair.privateKey.reveal());
      return null;
    }
  });

fuzz(
  'any state file is refused, or read as what is written again',
  250,
  [
    fc.oneof(
      mutated(fc.constant(stateText)),
      mutatedJson(fc.constant(JSON.parse(stateText)), Object.keys(state)).map((value) => JSON.stringify(value)),
    ),
  ],
  (text) => {
    bounded(() => versionOf(text));
    const read = parseOrNull(() => parseState(text));
    if (read === null) return;
    const written = formatState(read);
    expect(formatState(parseState(written))).toBe(written);
  },
);

const notes = formatNotes({
  ...noNotes,
  silent: { a: 1 },
  held: { since: 3 },
  troubles: ['x'],
  probed: { x: { address: null, trouble: 'y' } },
});
const modified = new Date('2026-03-01T12:00:00Z');

fuzz(
  'any notes are refused, or read as what is written again',
  1000,
  [
    fc.oneof(
      mutated(fc.constant(notes)),
      mutatedJson(fc.constant(JSON.parse(notes)), ['sync', 'silent', 'dead', 'lastSuccess']).map((value) =>
        JSON.stringify(value),
      ),
    ),
  ],
  (text) => {
    const read = parseOrNull(() => parseNotes(text, modified));
    if (read === null) return;
    const written = formatNotes(read);
    expect(formatNotes(parseNotes(written, modified))).toBe(written);
  },
);

const words = [
  '#',
  '# BEGIN cpn cpn0',
  '# END cpn cpn0\n',
  '\n',
  ' ',
  '=',
  'MTU',
  'MTU = ',
  '[Peer]\n',
  '[Interface]\n',
  'AllowedIPs = ',
  '10.0.0.0/8, ',
  ',',
  '\t',
  '{',
  '[',
  '"',
  '0',
  '\\u0000',
];

fuzz('no file is long enough to hang on', 100, [pumped(words)], (text) => {
  bounded(() => unlessRefused([InvalidValue], () => parseConfig(text)));
  bounded(() => unlessRefused([InvalidValue], () => parseConfig(`[Interface]\n${text}`)));
  bounded(() => unlessRefused([InvalidValue], () => parseProvidedConfig(`[Interface]\n${text}`)));
  bounded(() => findBlock(text, 'cpn0'));
  bounded(() => replaceBlock(text, 'cpn0', 'x\n'));
  parseOrNull(() => parseState(text));
  parseOrNull(() => parseNotes(text, modified));
  bounded(() => renderBlock('cpn0', network([{ ...someone, name: text }]), 'office'));
});

const rulesText = `mode: closed
rules:
  - {name: "a: b", from: &all [any, "peer:x y"], to: *all, protocol: tcp, ports: [22, 8000-8080]}
  - name: |-
      two
      lines
    from: [tag:web, gone:db]
    to: [route:192.168.0.0/16, cidr:192.168.0.7]
tests:
  - {from: peer:a, to: any, port: 5432, expect: deny}
`;

fuzz(
  'any file of rules is refused, or read as what is written again, which a terminal can show',
  500,
  [
    fc.oneof(
      mutated(fc.constant(rulesText)),
      mutatedJson(fc.constant(parseRules(rulesText, 'f').rules), ['mode', 'rules', 'from', 'ports']).map((value) =>
        JSON.stringify(value),
      ),
    ),
  ],
  (text) => {
    const read = unlessRefused([InvalidValue, WrongUsage], () => parseRules(text, 'f').rules);
    if (read === null) return;
    const written = formatRules(read);
    expect(parseRules(written, 'f').rules).toEqual(read);
    expect(printableLines(written)).toBe(written);
  },
);
