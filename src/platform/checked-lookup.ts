import type { LookupFunction } from 'node:net'
import { callbackify } from 'node:util'
import type { ResolvedAddress, ResolveHost } from './resolve-host.ts'

/** Connects to the checked address, not to the name, which could resolve differently later (DNS rebinding). */
export function createCheckedLookup(
  resolve: ResolveHost,
  isAllowed: (address: string) => boolean,
  refusal: () => Error,
): LookupFunction {
  const lookUp = callbackify(async (hostname: string): Promise<ResolvedAddress[]> => {
    const addresses = await resolve(hostname)
    if (addresses.length === 0) throw new Error('the host name has no address')
    // Checks all addresses, because any of them may be connected to.
    if (!addresses.every(({ address }) => isAllowed(address))) throw refusal()
    return [...addresses]
  })
  return (hostname, options, callback) =>
    lookUp(hostname, (error, addresses) => {
      // Node passes null for no error, but its types do not allow it.
      if ((error as Error | null) !== null) callback(error, '', 0)
      else if (options.all === true) callback(null, addresses)
      else callback(null, addresses[0]!.address, addresses[0]!.family)
    })
}
