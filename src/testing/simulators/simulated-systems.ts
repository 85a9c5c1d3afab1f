import { ACCOUNTS, fillAccount, applyWrite, type AccountName } from './accounts.ts'
import { SimulatedChainAccount } from './indexers/simulated-chain-account.ts'
import type { Simulator, SimulatorPorts } from './kit/simulator.ts'
import { SimulatedLedgerService } from './odata/simulated-ledger-service.ts'

/** Something that can be read like the real thing, and that people work in. */
export interface SimulatedSystem extends Simulator {
  /** The nth thing that happens in it. */
  write(n: number): void
  /** What it is opened with, by the name of the secret; anything will do unless given. */
  secret?(name: string): string | undefined
}

export type SimulatedSystemName = AccountName | 'evm' | 'odata'

/** With as much in it as it has at first. */
export function openSimulatedSystem(name: SimulatedSystemName, ports: SimulatorPorts): SimulatedSystem {
  if (name === 'evm') return new SimulatedChainAccount(ports)
  if (name === 'odata') return new SimulatedLedgerService(ports)
  const account = ACCOUNTS[name]
  const vendor = account.createSimulator(ports)
  fillAccount(vendor, account)
  return { handle: (request) => vendor.handle(request), write: (n) => applyWrite(vendor, account, n, ports.random), ...(account.secret !== undefined && { secret: account.secret }) }
}
