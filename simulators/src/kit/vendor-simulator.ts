import { ApiSimulator } from './api-simulator.ts'
import type { Fields, SimulatorPorts } from './simulator.ts'
import { VersionedRecords, type IndexLag, type RecordVersion } from './versioned-records.ts'

export type { ApiCall } from './api-simulator.ts'

/** Options of every vendor simulator. */
export interface VendorOptions {
  /** How late writes become visible in reads that the vendor serves from an index. No lag by default. */
  readonly lag?: IndexLag
  /** When given, other credentials are refused; otherwise any are accepted, but some are required. */
  readonly token?: string
  /** Overrides a fixed page size, for tests that need many pages of few rows. */
  readonly pageSizeMax?: number
}

/**
 * The base of every simulated vendor: records with a history, and writes by the test. A vendor adds its rules in
 * `respond` and its own refusals.
 */
export abstract class VendorSimulator extends ApiSimulator {
  readonly records: VersionedRecords
  protected readonly pageSizeMax: number

  constructor(ports: SimulatorPorts, options: VendorOptions = {}) {
    super(ports, options.token)
    this.pageSizeMax = options.pageSizeMax ?? Infinity
    this.records = new VersionedRecords(ports, options.lag)
  }

  /** The current records, rendered as the vendor shows them to a reader that misses nothing. */
  truth(type: string): Fields[] {
    return this.records.current(type).map((version) => this.render(version))
  }

  /** Returns the id the vendor assigned. */
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

  /**
   * Drops superseded and deleted versions up to this time, and the request log, so that an account can run for days.
   */
  prune(beforeMs: number): void {
    this.records.prune(beforeMs)
    this.requests.clear()
  }

  protected abstract newId(type: string): string
  protected abstract render(version: RecordVersion): Fields

  /** For vendors that keep an event log or an audit of their writes. */
  protected onWrite(
    _kind: 'created' | 'updated' | 'deleted',
    _version: RecordVersion,
    _before: RecordVersion | undefined,
  ): void {}
}
