import { lookup } from 'node:dns'

export interface Address {
  readonly address: string
  readonly family: number
}

/** All addresses of a name. */
export type Resolve = (hostname: string) => Promise<readonly Address[]>

export const resolveBySystem: Resolve = (hostname) =>
  new Promise((resolve, reject) => {
    lookup(hostname, { all: true, verbatim: true }, (error, addresses) => (error === null ? resolve(addresses) : reject(error)))
  })
