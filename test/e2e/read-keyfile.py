"""Reads a keyfile with NetworkManager's own library, and prints what it says as JSON; what the library complains of too."""

import json
import sys

import gi

gi.require_version("NM", "1.0")
from gi.repository import GLib, NM  # noqa: E402

complaints = []


def hear(keyfile, connection, kind, data, *rest):
    complaints.append(data.get_message() if hasattr(data, "get_message") else str(data))
    return True


keyfile = GLib.KeyFile()
keyfile.load_from_file(sys.argv[1], GLib.KeyFileFlags.NONE)
connection = NM.keyfile_read(keyfile, "/etc/NetworkManager/system-connections", NM.KeyfileHandlerFlags.NONE, hear, None)
connection.verify()
tunnel = connection.get_setting_by_name("wireguard")
addresses = connection.get_setting_ip4_config()
peers = [tunnel.get_peer(at) for at in range(tunnel.get_peers_len())]
print(
    json.dumps(
        {
            "complaints": complaints,
            "link": connection.get_interface_name(),
            "type": connection.get_connection_type(),
            "uuid": connection.get_uuid(),
            "private_key": tunnel.get_private_key(),
            "mtu": tunnel.get_mtu(),
            "listen_port": tunnel.get_listen_port(),
            "addresses": [
                f"{each.get_address()}/{each.get_prefix()}"
                for each in (addresses.get_address(at) for at in range(addresses.get_num_addresses()))
            ],
            "peers": [
                {
                    "public_key": peer.get_public_key(),
                    "preshared_key": peer.get_preshared_key(),
                    "endpoint": peer.get_endpoint(),
                    "allowed_ips": [peer.get_allowed_ip(at) for at in range(peer.get_allowed_ips_len())],
                    "keepalive": peer.get_persistent_keepalive(),
                }
                for peer in peers
            ],
        }
    )
)
