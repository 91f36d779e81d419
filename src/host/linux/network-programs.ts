/** Whether the program changes interfaces, routes, packet rules or WireGuard peers by itself. */
export function isNetworkDaemon(name: string): boolean {
  return daemons.has(name) || wireguardDaemon.test(name);
}

/** Whether the program is a command that changes networks. */
export function isNetworkTool(name: string): boolean {
  return tools.has(name) || /^ip6?tables/.test(name);
}

const daemons = new Set([
  // Interfaces and addresses.
  ...['NetworkManager', 'systemd-networkd', 'networkd-dispatcher', 'connmand', 'netplan', 'ifup', 'ifdown', 'ifplugd'],
  ...[
    'dhclient',
    'dhcpcd',
    'dhcpcd5',
    'udhcpc',
    'wicked',
    'wickedd',
    'wickedd-dhcp4',
    'wickedd-dhcp6',
    'wickedd-nanny',
  ],
  ...[
    'netifd',
    'pppd',
    'cloud-init',
    'waagent',
    'google_guest_agent',
    'keepalived',
    'ucarp',
    'systemd-sysctl',
    'tuned',
  ],
  // Routes.
  ...['bird', 'bird6', 'zebra', 'watchfrr', 'staticd', 'gobgpd', 'babeld', 'olsrd'],
  // Packet rules.
  ...['firewalld', 'ufw', 'fail2ban-server', 'shorewall', 'ferm', 'dockerd', 'podman', 'netavark', 'libvirtd'],
  ...[
    'virtnetworkd',
    'lxd',
    'incusd',
    'kubelet',
    'kube-proxy',
    'calico-node',
    'cilium-agent',
    'flanneld',
    'k3s-server',
  ],
  // Tunnels.
  ...['netbird', 'tailscaled', 'innernet', 'innernet-server', 'netclient', 'netmaker', 'zerotier-one', 'nebula'],
  ...['mullvad-daemon', 'nordvpnd', 'openvpn', 'charon', 'charon-systemd', 'wgd'],
]);

/** wg-quick, wg-easy, wg-portal, wg-gen-web and others. */
const wireguardDaemon = /^wg-[a-z]/;

const tools = new Set(['ip', 'wg', 'nft', 'ifconfig', 'route', 'sysctl', 'nmcli', 'networkctl']);
