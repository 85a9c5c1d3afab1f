import { systemRandom } from '../../platform/random.ts'
import { ACCOUNTS, LaggingClock, fillAccount, serve, applyWrite, type AccountName, type ApiFault, type SimulatorServer, type VendorSimulator } from '../../testing/simulators/index.ts'

const VENDOR_NAMES = ['stripe', 'hubspot', 'github'] as const satisfies AccountName[]

/** Before that it was filled: long ago, and not so long that a log of events has forgotten it. */
const FILLED_AGO_MS = 20 * 86_400_000
const HOUR_MS = 3_600_000
/** Between two writes, whoever of the vendors gets it. */
const WRITE_EVERY_MS = 300
/** What was superseded or deleted longer ago than this is let go of: the accounts live on without growing. */
const HISTORY_MS = 30 * 60_000
const PRUNE_EVERY_MS = 60_000
/** Every so many writes, a contact gets an address that is none, and ends in quarantine. */
const INVALID_EMAIL_EVERY_WRITES = 90

const FAULT_RATES: ReadonlyArray<readonly [ApiFault, number]> = [
  // Of GitHub the secondary one: the primary would last until the hour is over.
  [{ kind: 'rate-limit', retryAfter: '2', secondary: true }, 0.02],
  [{ kind: 'server-error', status: 503 }, 0.02],
  [{ kind: 'slow', ms: 1_500 }, 0.03],
]

/** Three vendors on this machine, each with an account that somebody works in. */
export class DemoVendors {
  readonly #vendors: ReadonlyMap<AccountName, { readonly simulator: VendorSimulator; readonly served: SimulatorServer }>
  readonly #timers: NodeJS.Timeout[] = []
  #writes = 0

  private constructor(vendors: Map<AccountName, { simulator: VendorSimulator; served: SimulatorServer }>) {
    this.#vendors = vendors
  }

  static async open(): Promise<DemoVendors> {
    const vendors = new Map<AccountName, { simulator: VendorSimulator; served: SimulatorServer }>()
    for (const name of VENDOR_NAMES) {
      const clock = new LaggingClock(FILLED_AGO_MS)
      const simulator = ACCOUNTS[name].createSimulator({ clock, random: systemRandom })
      fillAccount(simulator, ACCOUNTS[name])
      // Something has happened since, too: a change feed that is empty would have nowhere to begin.
      clock.lagMs = HOUR_MS
      for (let n = 0; n < 20; n++) applyWrite(simulator, ACCOUNTS[name], n, systemRandom)
      clock.lagMs = 0
      vendors.set(name, { simulator, served: await serve(simulator) })
    }
    return new DemoVendors(vendors)
  }

  /** By the name of the vendor. */
  get urls(): Record<string, string> {
    return Object.fromEntries([...this.#vendors].map(([name, { served }]) => [name, served.url]))
  }

  get writes(): number {
    return this.#writes
  }

  /** How many requests the vendors have answered. */
  get requests(): number {
    return [...this.#vendors.values()].reduce((sum, { served }) => sum + served.requests, 0)
  }

  /** From now on people work in the accounts, and the vendors have bad moments: each fault once at first, then by chance. */
  startActivity(): void {
    for (const { simulator } of this.#vendors.values()) {
      for (const [fault] of FAULT_RATES) simulator.faults.plan(fault)
      simulator.faults.injectAtRates(FAULT_RATES)
    }
    this.#timers.push(setInterval(() => this.#write(), WRITE_EVERY_MS), setInterval(() => this.#prune(), PRUNE_EVERY_MS))
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    await Promise.all([...this.#vendors.values()].map(({ served }) => served.close()))
  }

  #write(): void {
    const n = this.#writes++
    const name = VENDOR_NAMES[n % VENDOR_NAMES.length]!
    const { simulator } = this.#vendors.get(name)!
    if (n % INVALID_EMAIL_EVERY_WRITES !== INVALID_EMAIL_EVERY_WRITES - 2) return applyWrite(simulator, ACCOUNTS[name], Math.floor(n / VENDOR_NAMES.length), systemRandom)
    simulator.update('contacts', simulator.records.current('contacts')[0]!.id, { email: `nobody, ${n}` })
  }

  #prune(): void {
    for (const { simulator } of this.#vendors.values()) simulator.prune(Date.now() - HISTORY_MS)
  }
}
