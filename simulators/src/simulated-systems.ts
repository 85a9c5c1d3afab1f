import { ACCOUNTS, fillAccount, applyWrite, type AccountName } from './accounts.ts'
import { SimulatedChainAccount } from './indexers/simulated-chain-account.ts'
import type { Simulator, SimulatorPorts } from './kit/simulator.ts'
import { SimulatedLedgerService } from './odata/simulated-ledger-service.ts'

/** A simulated system that can be read like the real one, with a workload. */
export interface SimulatedSystem extends Simulator {
  /** The nth write. */
  write(n: number): void
  /** Accepted credentials, by the name of the secret; any value when absent. */
  secret?(name: string): string | undefined
}

/** A system that the package can simulate. */
export type SimulatedSystemName = AccountName | 'evm' | 'odata'

/** Creates the initial records. */
export function openSimulatedSystem(name: SimulatedSystemName, ports: SimulatorPorts): SimulatedSystem {
  if (name === 'evm') return new SimulatedChainAccount(ports)
  if (name === 'odata') return new SimulatedLedgerService(ports)
  const account = ACCOUNTS[name]
  const vendor = account.createSimulator(ports)
  fillAccount(vendor, account)
  return {
    handle: (request) => vendor.handle(request),
    write: (n) => applyWrite(vendor, account, n, ports.random),
    ...(account.secret !== undefined && { secret: account.secret }),
  }
}
