import { lookup } from 'node:dns'

export interface ResolvedAddress {
  readonly address: string
  readonly family: number
}

/** Resolves all addresses of a host name. */
export type ResolveHost = (hostname: string) => Promise<readonly ResolvedAddress[]>

export const systemResolveHost: ResolveHost = (hostname) =>
  new Promise((resolve, reject) => {
    lookup(hostname, { all: true, verbatim: true }, (error, addresses) =>
      error === null ? resolve(addresses) : reject(error),
    )
  })
