import { ACCOUNTS, fillAccount, writeOnce, type AccountName } from './accounts.ts'
import { ChainWorld } from './indexers/chain-world.ts'
import type { Simulator, SimulatorPorts } from './kit/simulator.ts'
import { LedgerWorld } from './odata/ledger-world.ts'

/** Something that can be read like the real thing, and that people work in. */
export interface World extends Simulator {
  /** The nth thing that happens in it. */
  write(n: number): void
  /** What it is opened with, by the name of the secret; anything will do unless given. */
  secret?(name: string): string | undefined
}

export type WorldName = AccountName | 'evm' | 'odata'

/** With as much in it as it has at first. */
export function openWorld(name: WorldName, ports: SimulatorPorts): World {
  if (name === 'evm') return new ChainWorld(ports)
  if (name === 'odata') return new LedgerWorld(ports)
  const account = ACCOUNTS[name]
  const vendor = account.make(ports)
  fillAccount(vendor, account)
  return { handle: (request) => vendor.handle(request), write: (n) => writeOnce(vendor, account, n, ports.random), ...(account.secret !== undefined && { secret: account.secret }) }
}
