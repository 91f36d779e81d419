/**
 * The words and numbers that identify our resources in the kernel.
 *
 * @module
 */

/** The prefix of the alias of our interfaces; the network's id follows. */
export const aliasMark = 'cpn:';

/** Marks our routes and policy rules (`proto 157`). iproute2's rt_protos has no program for it. */
export const routeProtocol = '157';

/**
 * The metric of accepted routes. Local networks' routes have lower metrics, and so win: 0 by DHCP
 * clients, 100 to 700 by NetworkManager, up to 1024 by systemd-networkd.
 */
export const acceptedMetric = 10_000;

/** The protocol of routes that the kernel adds (RTPROT_KERNEL), as iproute2 prints it. */
export const kernelProtocol = 'kernel';

/**
 * Marks a full tunnel's own packets, which must not enter it. Shares no bit with kube-proxy
 * (0xc000), Cilium (0x0f00), or the marks above 0xffff of Calico and Tailscale.
 */
export const tunnelMark = 0x209d;

/**
 * The bit of packet marks and connection marks for connections that began outside a full tunnel.
 * kube-proxy (0xc000), Cilium's kinds (0x0f00), Calico and Tailscale (0xff0000), Antrea
 * (0x80000000) and Mullvad (0x6d6f6c65) do not use it. Docker, ufw and firewalld set no marks.
 * Cilium's identities of 4096 and more, in its upper half, are the exception.
 */
export const outsideMark = 0x1000_0000;

/**
 * Marks with these bits belong to programs that compare the whole mark, which another bit would
 * break: wg-quick (0xca6c), NetBird (0x1bd00), handwritten rules (`fwmark 1`).
 */
export const wholeMarkBits = 0x30ff;

/** The routing table of a full tunnel: wg-quick(8) uses the table with the number of the mark. */
export const tunnelTable = String(tunnelMark);

/**
 * The priorities of our policy rules, lowest first. They come after the tables of the host itself
 * (0) and the priorities that administrators assign. They come before the main table (32766), and
 * before 32764, the priority of wg-quick's rules on a host without other rules.
 *
 * Packets past the tunnel continue at `end`. Packets that no table of the host routes continue at
 * `last`, after all other rules: rules may have any priority up to 2³².
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
 * The priorities of the rules of a strict tunnel. They precede the rules that use the main table
 * before a table of accepted routes; `accepted` leads to these tables. As in a tunnel that is not
 * strict, `main` and `accepted` precede the rules that lead past the tunnel.
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
 * The routing tables of accepted routes, one for each network of a host. The two rules of a table
 * precede those of a full tunnel, so that its routes have the same effect as in the main table.
 */
export const routeTables = { first: 8350, count: 50, firstPriority: 31_470 } as const;

/** The kernel's priority of the main table (fib_default_rules_init in net/ipv4/fib_rules.c). */
export const mainPriority = 32_766;
