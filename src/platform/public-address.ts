import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

/** Non-public address ranges: loopback, private networks, cloud metadata and their IPv6 forms. */
const NON_PUBLIC_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]
const NON_PUBLIC_V6 = [
  '::/128',
  '::1/128',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
  // Deprecated IPv4-compatible IPv6 addresses; BlockList handles ::ffff:0:0/96 itself.
  '::/96',
]

const nonPublicRanges = new BlockList()
for (const [list, family] of [
  [NON_PUBLIC_V4, 'ipv4'],
  [NON_PUBLIC_V6, 'ipv6'],
] as const) {
  for (const range of list) {
    const [address, bits] = range.split('/') as [string, string]
    nonPublicRanges.addSubnet(address, Number(bits), family)
  }
}

/** Also false for text that is not an address. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !nonPublicRanges.check(address, 'ipv4')
  return isIPv6(address) && !address.includes('%') && !nonPublicRanges.check(address, 'ipv6')
}

/** Host names of this machine and of cloud metadata services, known without a resolver. */
const PRIVATE_NAME_PATTERN = /^(?:.*\.)?(?:localhost|local|internal|localdomain|home\.arpa)$/

/** Checks without a resolver. The addresses of a name are checked when it is connected to. */
export function isPublicHost(hostname: string): boolean {
  const host = hostname
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
    .toLowerCase()
  if (isIP(host) !== 0) return isPublicAddress(host)
  return host.includes('.') && !PRIVATE_NAME_PATTERN.test(host)
}
