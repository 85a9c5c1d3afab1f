import type { SimulatorPorts } from '../kit/simulator.ts'
import type { SimulatedSystem } from '../simulated-systems.ts'
import { OdataSimulator } from './simulator.ts'
import { required } from '../kit/required.ts'

const SETS = {
  Accounts: {
    key: ['AccountID'],
    properties: {
      AccountID: 'Edm.String',
      Name: 'Edm.String',
      Balance: 'Edm.Decimal',
      LastUpdated: 'Edm.DateTimeOffset',
    },
  },
} as const

const COUNT = 200
const NAMES = ['Cash', 'Receivables', 'Inventory', 'Berths', 'Cranes', 'Payables', 'Wages', 'Fuel', 'Pilotage', 'Dues']

/** A service with the accounts of a ledger: balances change, and accounts are occasionally opened. */
export class SimulatedLedgerService implements SimulatedSystem {
  readonly #ports: SimulatorPorts
  readonly #service: OdataSimulator
  #count = 0

  constructor(ports: SimulatorPorts) {
    this.#ports = ports
    this.#service = new OdataSimulator(ports, { version: 4, sets: SETS, pageSizeMax: 100 })
    while (this.#count < COUNT) this.#put(this.#count++)
  }

  handle(request: Request): Promise<Response> {
    return this.#service.handle(request)
  }

  write(n: number): void {
    this.#put(n % 10 === 9 ? this.#count++ : Math.floor(this.#ports.random.next() * this.#count))
  }

  #put(number: number): void {
    const { clock, random } = this.#ports
    this.#service.put('Accounts', {
      AccountID: String(100_000 + number),
      Name: `${required(NAMES[number % NAMES.length], 'NAMES[…]')} ${Math.floor(number / NAMES.length) + 1}`,
      Balance: `${Math.floor(random.next() * 100_000)}.${String(number % 100).padStart(2, '0')}`,
      LastUpdated: new Date(clock.now()).toISOString(),
    })
  }
}
