/**
 * Real SSH servers for a simulated host, as scripts for its shell. They need `/run` to be the host's own, and leave the machine's settings
 * and keys alone.
 *
 * @module
 */

/** Starts OpenSSH's server, which takes one key for each user, of the folder `keys`. */
export function startSshd(keys: string, ...ports: number[]): string {
  return `mkdir -p /run/sshd ${keys}
    [ -e ${keys}/host ] || ssh-keygen -q -t ed25519 -N '' -f ${keys}/host
    [ -e ${keys}/client ] || ssh-keygen -q -t ed25519 -N '' -f ${keys}/client
    chmod 755 ${keys}
    /usr/sbin/sshd -f /dev/null -h ${keys}/host ${ports.map((port) => `-p ${port}`).join(' ')} -o PidFile=none -o UsePAM=no \\
      -o StrictModes=no -o PermitRootLogin=yes -o PasswordAuthentication=no -o AuthorizedKeysFile=${keys}/client.pub`;
}

/** Starts Dropbear. It takes the same key, for root, whose home becomes one of this host alone. */
export function startDropbear(keys: string, port: number): string {
  return `mount -t tmpfs -o mode=700 tmpfs /root
    mkdir -m 700 /root/.ssh; cp ${keys}/client.pub /root/.ssh/authorized_keys
    dropbearkey -t ed25519 -f ${keys}/dropbear >/dev/null
    dropbear -E -r ${keys}/dropbear -P ${keys}/dropbear.pid -p ${port} 2>${keys}/dropbear.log`;
}

/** The command of OpenSSH's client for such a server. */
export function sshArgs(keys: string, ...args: string[]): string[] {
  const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR', 'BatchMode=yes'];
  return ['ssh', '-F', '/dev/null', '-i', `${keys}/client`, ...options.flatMap((each) => ['-o', each]), ...args];
}
