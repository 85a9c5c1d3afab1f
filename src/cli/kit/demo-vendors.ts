import {
  ACCOUNTS,
  LaggingClock,
  applyWrite,
  fillAccount,
  serve,
  type AccountName,
  type ApiFault,
  type SimulatorServer,
  type VendorSimulator,
} from '@tidemark/simulators'
import { required } from '../../values/required.ts'
import { systemRandom } from '../../platform/random.ts'

const VENDOR_NAMES = ['stripe', 'hubspot', 'github'] as const satisfies AccountName[]

/** The age of the initial records: old, but within the retention of the event logs. */
const FILLED_AGO_MS = 20 * 86_400_000
const HOUR_MS = 3_600_000
/** The interval between writes, across all vendors. */
const WRITE_EVERY_MS = 300
/** Older superseded and deleted records are pruned, so that the accounts do not grow. */
const HISTORY_MS = 30 * 60_000
const PRUNE_EVERY_MS = 60_000
/** One write in this many sets an invalid email address, which is quarantined. */
const INVALID_EMAIL_EVERY_WRITES = 90

const FAULT_RATES: ReadonlyArray<readonly [ApiFault, number]> = [
  // GitHub's secondary limit: the primary one would last until the end of the hour.
  [{ kind: 'rate-limit', retryAfter: '2', secondary: true }, 0.02],
  [{ kind: 'server-error', status: 503 }, 0.02],
  [{ kind: 'slow', ms: 1_500 }, 0.03],
]

/** Three simulated vendors on this machine, each with an account that changes continuously. */
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
      // Recent writes give each change feed a starting point.
      clock.lagMs = HOUR_MS
      for (let n = 0; n < 20; n++) applyWrite(simulator, ACCOUNTS[name], n, systemRandom)
      clock.lagMs = 0
      vendors.set(name, { simulator, served: await serve(simulator) })
    }
    return new DemoVendors(vendors)
  }

  /** Base URLs by vendor name. */
  get urls(): Record<string, string> {
    return Object.fromEntries([...this.#vendors].map(([name, { served }]) => [name, served.url]))
  }

  get writes(): number {
    return this.#writes
  }

  /** Number of requests that the vendors have answered. */
  get requests(): number {
    return [...this.#vendors.values()].reduce((sum, { served }) => sum + served.requests, 0)
  }

  /** Starts edits and faults: each fault once at first, then at its rate. */
  startActivity(): void {
    for (const { simulator } of this.#vendors.values()) {
      for (const [fault] of FAULT_RATES) simulator.faults.plan(fault)
      simulator.faults.injectAtRates(FAULT_RATES)
    }
    this.#timers.push(
      setInterval(() => this.#write(), WRITE_EVERY_MS),
      setInterval(() => this.#prune(), PRUNE_EVERY_MS),
    )
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    await Promise.all([...this.#vendors.values()].map(({ served }) => served.close()))
  }

  #write(): void {
    const n = this.#writes++
    const name = required(VENDOR_NAMES[n % VENDOR_NAMES.length], 'the vendor')
    const { simulator } = required(this.#vendors.get(name), name)
    if (n % INVALID_EMAIL_EVERY_WRITES !== INVALID_EMAIL_EVERY_WRITES - 2)
      return applyWrite(simulator, ACCOUNTS[name], Math.floor(n / VENDOR_NAMES.length), systemRandom)
    const [contact] = simulator.records.current('contacts')
    if (contact !== undefined) simulator.update('contacts', contact.id, { email: `invalid, ${n}` })
  }

  #prune(): void {
    for (const { simulator } of this.#vendors.values()) simulator.prune(Date.now() - HISTORY_MS)
  }
}
