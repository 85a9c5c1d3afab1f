import type { LookupFunction } from 'node:net'
import { callbackify } from 'node:util'
import type { ResolvedAddress, ResolveHost } from './resolve-host.ts'

/** The connection goes to an address that was checked, not to a name that may lead elsewhere a moment later. */
export function createCheckedLookup(resolve: ResolveHost, isAllowed: (address: string) => boolean, refusal: () => Error): LookupFunction {
  const lookUp = callbackify(async (hostname: string): Promise<ResolvedAddress[]> => {
    const addresses = await resolve(hostname)
    if (addresses.length === 0) throw new Error('the name has no address')
    // All of them: whichever answers first is connected to.
    if (!addresses.every(({ address }) => isAllowed(address))) throw refusal()
    return [...addresses]
  })
  return (hostname, options, callback) => lookUp(hostname, (error, addresses) => {
    // Node's own types have no null for the error, its callers do.
    if ((error as Error | null) !== null) callback(error, '', 0)
    else if (options.all === true) callback(null, addresses)
    else callback(null, addresses[0]!.address, addresses[0]!.family)
  })
}
