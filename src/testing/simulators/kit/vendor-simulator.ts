import { ApiSimulator } from './api-simulator.ts'
import type { Fields, SimulatorPorts } from './simulator.ts'
import { VersionedRecords, type IndexLag, type RecordVersion } from './versioned-records.ts'

export type { ApiCall } from './api-simulator.ts'

export interface VendorOptions {
  /** How late writes show in the reads that the vendor serves from an index. None by default. */
  readonly lag?: IndexLag
  /** When given, other credentials are refused; otherwise any will do, as long as there are some. */
  readonly token?: string
  /** Where a reader asks for pages of a fixed size: what tests that want many pages of few rows get instead. */
  readonly pageSizeMax?: number
}

/**
 * What every simulated vendor shares: records with a history, and writes by the test. A vendor adds its rules in
 * `respond` and its own way to refuse.
 */
export abstract class VendorSimulator extends ApiSimulator {
  readonly records: VersionedRecords
  protected readonly pageSizeMax: number

  constructor(ports: SimulatorPorts, options: VendorOptions = {}) {
    super(ports, options.token)
    this.pageSizeMax = options.pageSizeMax ?? Infinity
    this.records = new VersionedRecords(ports, options.lag)
  }

  /** What exists now, rendered as the vendor would show it to a reader who misses nothing. */
  truth(type: string): Fields[] {
    return this.records.current(type).map((version) => this.render(version))
  }

  /** Returns the id the vendor gave it. */
  create(type: string, fields: Fields = {}): string {
    const id = this.newId(type)
    this.onWrite('created', this.records.insert(type, id, fields), undefined)
    return id
  }

  update(type: string, id: string, changes: Fields): void {
    const before = this.records.find(type, id)
    this.onWrite('updated', this.records.update(type, id, changes), before)
  }

  remove(type: string, id: string): void {
    const before = this.records.find(type, id)
    this.onWrite('deleted', this.records.remove(type, id), before)
  }

  /** Lets go of what was superseded or over by then, and of the requests so far, so that an account may live for days. */
  prune(beforeMs: number): void {
    this.records.prune(beforeMs)
    this.requests.clear()
  }

  protected abstract newId(type: string): string
  protected abstract render(version: RecordVersion): Fields

  /** For vendors that keep an event log or an audit of their writes. */
  protected onWrite(_kind: 'created' | 'updated' | 'deleted', _version: RecordVersion, _before: RecordVersion | undefined): void {}
}
