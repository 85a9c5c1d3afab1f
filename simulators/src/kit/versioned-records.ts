import type { Fields, SimulatorPorts } from './simulator.ts'
import { SortedView, type RecordView } from './sorted-view.ts'
import { required } from './required.ts'

/** One version of a simulated record. */
export interface RecordVersion {
  readonly type: string
  readonly id: string
  readonly fields: Fields
  readonly createdAtMs: number
  readonly modifiedAtMs: number
  readonly deleted: boolean
  /** The time from which indexed reads show this version. Until then they show the one before, or nothing. */
  readonly visibleAtMs: number
  /** Increases with every write of the system. */
  readonly serial: number
}

/** How late a write becomes visible in indexed reads: the share of late writes, and the maximum delay. */
export interface IndexLag {
  readonly share: number
  readonly maxMs: number
}

/** Every version of every record of a system, so that late, old and deleted states can be queried. */
export class VersionedRecords {
  lag: IndexLag
  /** Replication lag of the replica that serves reads of the primary store. */
  replicaBehindMs = 0
  /** How far the clock that stamps records was set back. */
  clockBackMs = 0
  readonly #ports: SimulatorPorts
  readonly #histories = new Map<string, Map<string, RecordVersion[]>>()
  readonly #journals = new Map<string, RecordVersion[]>()
  readonly #views = new Map<RecordView, Map<string, SortedView>>()
  #serial = 0

  constructor(ports: SimulatorPorts, lag: IndexLag = { share: 0, maxMs: 0 }) {
    this.#ports = ports
    this.lag = lag
  }

  insert(type: string, id: string, fields: Fields): RecordVersion {
    if (this.#current(type, id) !== undefined) throw new Error(`${type} ${id} already exists.`)
    const now = this.#stampMs()
    return this.#write({ type, id, fields: { ...fields }, createdAtMs: now, modifiedAtMs: now, deleted: false })
  }

  update(type: string, id: string, changes: Fields): RecordVersion {
    const current = this.#existing(type, id)
    return this.#write({ ...current, fields: { ...current.fields, ...changes }, modifiedAtMs: this.#stampMs() })
  }

  remove(type: string, id: string): RecordVersion {
    const current = this.#existing(type, id)
    return this.#write({ ...current, modifiedAtMs: this.#stampMs(), deleted: true })
  }

  /** The current records in the primary store, in creation order. */
  current(type: string): RecordVersion[] {
    return this.latest(type).filter((version) => !version.deleted)
  }

  /** Like `current`, including deleted records. */
  latest(type: string): RecordVersion[] {
    return [...(this.#histories.get(type)?.values() ?? [])].map((history) =>
      required(history.at(-1), 'an entry of history'),
    )
  }

  /** The records that indexed reads show now, deleted ones included and marked. */
  indexed(type: string): RecordVersion[] {
    const now = this.#ports.clock.now()
    const shown: RecordVersion[] = []
    for (const history of this.#histories.get(type)?.values() ?? []) {
      const version = history.findLast((candidate) => candidate.visibleAtMs <= now)
      if (version !== undefined) shown.push(version)
    }
    return shown
  }

  /** The records of a view, in its order. */
  sorted(type: string, view: RecordView, group = ''): readonly RecordVersion[] {
    let views = this.#views.get(view)
    if (views === undefined) this.#views.set(view, (views = new Map()))
    let sorted = views.get(type)
    const isBehind = view.reads === 'primary' && this.replicaBehindMs > 0
    if (sorted === undefined) views.set(type, (sorted = new SortedView(isBehind ? { ...view, reads: 'index' } : view)))
    return sorted.list(
      this.#journals.get(type) ?? [],
      this.#ports.clock.now() - (isBehind ? this.replicaBehindMs : 0),
      group,
    )
  }

  find(type: string, id: string): RecordVersion | undefined {
    return this.#histories.get(type)?.get(id)?.at(-1)
  }

  history(type: string, id: string): readonly RecordVersion[] {
    return this.#histories.get(type)?.get(id) ?? []
  }

  types(): string[] {
    return [...this.#histories.keys()]
  }

  /**
   * For a long-running account: of earlier writes, each record keeps its newest version, and deleted records are
   * dropped. Visible records stay visible; the views are sorted again.
   */
  prune(beforeMs: number, isOver: (version: RecordVersion) => boolean = ({ deleted }) => deleted): void {
    for (const [type, histories] of this.#histories) {
      for (const [id, history] of histories) {
        const shown = history.findLastIndex(({ visibleAtMs }) => visibleAtMs < beforeMs)
        if (shown === history.length - 1 && isOver(required(history[shown], 'history[shown]'))) histories.delete(id)
        else if (shown > 0) history.splice(0, shown)
      }
      this.#journals.set(
        type,
        [...histories.values()].flat().toSorted((a, b) => a.serial - b.serial),
      )
    }
    this.#views.clear()
  }

  #stampMs(): number {
    return this.#ports.clock.now() - this.clockBackMs
  }

  #write(version: Omit<RecordVersion, 'visibleAtMs' | 'serial'>): RecordVersion {
    const written = { ...version, visibleAtMs: this.#ports.clock.now() + this.#drawLagMs(), serial: ++this.#serial }
    let histories = this.#histories.get(version.type)
    if (histories === undefined) this.#histories.set(version.type, (histories = new Map()))
    const history = histories.get(version.id)
    if (history === undefined) histories.set(version.id, [written])
    else history.push(written)
    const journal = this.#journals.get(version.type)
    if (journal === undefined) this.#journals.set(version.type, [written])
    else journal.push(written)
    return written
  }

  /** Always two draws, so that changing the lag does not change later draws. */
  #drawLagMs(): number {
    const late = this.#ports.random.next() < this.lag.share
    const part = this.#ports.random.next()
    return late ? Math.ceil(part * this.lag.maxMs) : 0
  }

  #current(type: string, id: string): RecordVersion | undefined {
    const version = this.find(type, id)
    return version?.deleted === true ? undefined : version
  }

  #existing(type: string, id: string): RecordVersion {
    const version = this.#current(type, id)
    if (version === undefined) throw new Error(`${type} ${id} does not exist.`)
    return version
  }
}
