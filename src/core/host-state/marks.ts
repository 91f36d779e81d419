/**
 * The words and numbers by which what is ours is known in the kernel.
 *
 * @module
 */

/** How the alias of each of our interfaces begins; the network's id follows. */
export const aliasMark = 'cpn:';

/**
 * Marks routes and policy rules as ours (`ip route … proto 157`, `ip rule … protocol 157`); iproute2's rt_protos assigns it
 * to no program.
 */
export const routeProtocol = '157';

/**
 * The metric of accepted routes. DHCP clients give a local network's route 0, NetworkManager 100 to 700, systemd-networkd up to
 * 1024: of two routes to one prefix the kernel takes the one with the lower metric, and so the local network's.
 */
export const acceptedMetric = 10_000;

/** The protocol of the routes that the kernel makes for addresses (RTPROT_KERNEL), as iproute2 prints it. */
export const kernelProtocol = 'kernel';

/**
 * The mark on a full tunnel's own packets, which must not go through it. It shares no bit with the marks of kube-proxy
 * (0xc000) and Cilium (0x0f00), nor with those above 0xffff, where Calico and Tailscale have theirs.
 */
export const tunnelMark = 0x209d;

/**
 * The bit of a packet's and a connection's mark for connections that began outside a full tunnel. Kube-proxy (0xc000), Cilium's
 * kinds (0x0f00), Calico and Tailscale (0xff0000), Antrea (0x80000000) and Mullvad (0x6d6f6c65) leave it free; Docker, ufw and
 * firewalld set no marks. Cilium's identities of 4096 and more, in its upper half, are the exception.
 */
export const outsideMark = 0x1000_0000;

/**
 * Marks with one of these bits belong to programs that compare the whole mark, as wg-quick (0xca6c), NetBird (0x1bd00) and rules
 * written by hand (`fwmark 1`) do. A second bit would end such a comparison.
 */
export const wholeMarkBits = 0x30ff;

/** The routing table of a full tunnel: wg-quick(8) uses the table with the number of the mark. */
export const tunnelTable = String(tunnelMark);

/**
 * The priorities of our policy rules, lowest first: after the tables of the host itself (0) and those that an administrator
 * gives numbers by hand, before the main table (32766), and before 32764, where wg-quick's rules come to be on a host
 * that has no others. What goes past the tunnel continues at `end`, and what no table of the host leads anywhere at `last`, after
 * all others: rules may have any priority up to 2³².
 */
export const rulePriority = {
  source: 31_570,
  service: 31_571,
  resolver: 31_572,
  main: 31_573,
  tunnel: 31_574,
  end: 31_575,
  last: 2_147_483_647,
} as const;

/**
 * The priorities of the rules of a strict tunnel, before those that ask the main table ahead of a table of accepted routes; `accepted`
 * leads to these tables. As in a tunnel that is not strict, what these two lead to comes before the rules that lead past the tunnel.
 */
export const strictPriority = {
  main: 31_460,
  accepted: 31_461,
  source: 31_462,
  service: 31_463,
  resolver: 31_464,
  tunnel: 31_465,
} as const;

/**
 * The routing tables of accepted routes: each network of a host has one of these. Its two rules are asked before those of a full tunnel,
 * to which the routes are thereby what they would be in the main table.
 */
export const routeTables = { first: 8350, count: 50, firstPriority: 31_470 } as const;

/** The priority at which the kernel looks up the main table (fib_default_rules_init in net/ipv4/fib_rules.c). */
export const mainPriority = 32_766;
