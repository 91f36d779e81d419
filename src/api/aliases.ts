/**
 * The names of each field, ours first. The public contract names no field of a reply: a service
 * without our extensions may use the other names. Only this file has them, except the peer fields
 * with one name in core/map/peer-fields.ts.
 */
export const aliases = {
  network: {
    id: ['id', 'network_id'],
    name: ['name', 'network_name'],
    /** If network and peer are one object, whose `id` and `name` are the peer's. */
    flatId: ['network_id', 'networkId'],
    flatName: ['network_name', 'networkName'],
    description: ['description'],
    cidr: ['private_cidr', 'privateCidr', 'cidr', 'network_cidr', 'subnet'],
    routes: ['routes', 'advertised_routes', 'private_routes'],
    maxAge: ['map_max_age_seconds'],
    relay: ['relay'],
    spread: ['spread'],
    routeDns: ['route_dns'],
    selfEnroll: ['self_enroll'],
    approval: ['approval'],
    rules: ['rules'],
    vpnType: ['vpn_type', 'vpnType'],
    revision: ['revision'],
    etag: ['etag'],
    nonce: ['nonce'],
    base: ['base'],
    peers: ['peers', 'members', 'nodes'],
    removed: ['removed'],
    messages: ['messages'],
    receipt: ['receipt'],
  },
  routeDns: {
    route: ['route'],
    servers: ['dns_servers'],
    domains: ['domains'],
  },
  rules: {
    mode: ['mode'],
    list: ['rules'],
    requireEnforcement: ['require_enforcement'],
    name: ['name'],
    from: ['from'],
    to: ['to'],
    protocol: ['protocol'],
    ports: ['ports'],
  },
  peer: {
    id: ['id', 'peer_id', 'uuid'],
    name: ['name', 'peer_name', 'hostname'],
    type: ['peer_type', 'peerType', 'type'],
    publicKey: ['public_key', 'publicKey', 'pubkey', 'wireguard_public_key'],
    address: ['address', 'ip', 'ip_address', 'ipAddress', 'private_ip', 'assigned_ip', 'tunnel_ip', 'vpn_ip'],
    endpoint: ['endpoint', 'public_endpoint'],
    routes: ['routes', 'served_routes'],
    withdrawn: ['withdrawn'],
    serial: ['serial'],
    signature: ['signature'],
    suspendedAt: ['suspended_at'],
    profile: ['profile'],
    connector: ['connector'],
    declined: ['declined'],
    user: ['user'],
    createdAt: ['created_at', 'createdAt'],
  },
  enrollment: {
    peer: ['peer', 'wireguard_peer', 'node'],
    network: ['network', 'private_network'],
    accessToken: ['access_token', 'accessToken', 'peer_token', 'token'],
    etag: ['network_etag'],
    config: ['config', 'wg_config', 'wireguard_config', 'wg_quick', 'configuration'],
  },
  reportReply: {
    reachableBy: ['reachable_by'],
    witnesses: ['witnesses'],
  },
  key: {
    id: ['id', 'key_id'],
    name: ['name'],
    token: ['enrollment_token', 'enrollmentToken', 'enrollment_key', 'token', 'key'],
    maxUses: ['max_uses', 'maxUses'],
    uses: ['uses', 'used'],
    peerTypes: ['peer_types'],
    routes: ['routes'],
    tags: ['tags'],
    peerHours: ['peer_expires_in_hours'],
    expiresAt: ['expires_at', 'expiresAt'],
  },
  session: {
    token: ['access_token', 'accessToken', 'token'],
    type: ['token_type', 'tokenType'],
    expiresAt: ['expires_at', 'expiresAt'],
  },
  profile: {
    /** If the user is not the reply itself. */
    user: ['user', 'profile'],
    email: ['email'],
    role: ['role'],
    networks: ['networks'],
    organization: ['organization', 'organisation', 'team'],
    id: ['id'],
    name: ['name'],
  },
  /** The page links of a list, next to its entries. */
  page: {
    links: ['links', '_links'],
    next: ['next'],
    address: ['href', 'url'],
    nextAddress: ['next_page_url'],
    meta: ['meta', 'pagination'],
    current: ['current_page', 'currentPage'],
    last: ['last_page', 'lastPage'],
  },
} as const satisfies Record<string, Record<string, Aliases>>;

/** A field's own name, and what else it may be called. */
export type Aliases = readonly [string, ...string[]];
