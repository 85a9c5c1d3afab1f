import type { RecordVersion } from '@tidemark/simulators'

/** One write at the vendor, numbered in the true order of all writes. */
export interface VendorWrite extends Pick<RecordVersion, 'id' | 'deleted' | 'modifiedAtMs' | 'visibleAtMs'> {
  readonly write: number
  /** Made after the vendor's clock was set back: an older write may have a later time. */
  readonly isBackdated: boolean
}

/** Every write to the records of a world, in the true order. */
export class WriteHistory {
  count = 0
  readonly #records = new Map<string, VendorWrite[]>()

  add({ id, deleted, modifiedAtMs, visibleAtMs }: RecordVersion, isBackdated: boolean): void {
    const written: VendorWrite = { id, deleted, modifiedAtMs, visibleAtMs, write: this.count, isBackdated }
    const known = this.#records.get(id)
    if (known === undefined) this.#records.set(id, [written])
    else known.push(written)
  }

  writesOf(id: string): readonly VendorWrite[] {
    return this.#records.get(id) ?? []
  }

  /** Timestamps do not reveal the order of the writes to this record. */
  isBackdated(id: string): boolean {
    return this.writesOf(id).some((written) => written.isBackdated)
  }

  records(): Iterable<readonly VendorWrite[]> {
    return this.#records.values()
  }
}
