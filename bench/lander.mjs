import { hash } from 'node:crypto'
import { openPostgresStore } from '../dist/stores/postgres/store.js'
import { openSqliteStore } from '../dist/stores/sqlite/store.js'
import { recordOf } from './records.mjs'

/** The store alone, without sealing. SQLite in this thread, as its raw limit is. */
export function openBareStore(url, options = {}) {
  if (!url.startsWith('sqlite:')) return openPostgresStore({ url, ...options })
  return openSqliteStore({ file: url.slice('sqlite:'.length), thread: false, ...options })
}

/** An incoming record as the engine hands it to the store: serialised and hashed. */
export function landingOf(record, database = 'accounts') {
  const text = JSON.stringify(record)
  return {
    type: 'upsert',
    database,
    key: record.id,
    text,
    hash: hash('sha1', text, 'base64').slice(0, 16),
    cursor: null,
    upstreamAt: `${record.updated_at.slice(0, 19)}.000000Z`,
  }
}

export function landings(from, count, version = 0, database = 'accounts') {
  return Array.from({ length: count }, (_, n) => landingOf(recordOf(from + n, version), database))
}

/** A sync that commits pages, with no engine around it. */
export class Lander {
  static async take(store, sync) {
    const { lease, checkpoint } = await store.acquire(
      { worker: 'bench', sync },
      { holder: 'bench', ttlMs: 3_600_000, at: Date.now() },
    )
    return new Lander(store, lease, checkpoint.version)
  }

  constructor(store, lease, version) {
    Object.assign(this, { store, lease, version })
  }

  /** Commits one page, and the cycle with it; returns the resulting sequence. */
  async cycle(landings, databases = ['accounts']) {
    await this.begin('incremental', databases)
    return (await this.complete(landings)).headSequence
  }

  async begin(mode, databases = ['accounts']) {
    const request = { at: Date.now(), mode, trigger: 'bench', fresh: false, databases }
    const { inflight } = await this.store.beginCycle(this.lease, request)
    Object.assign(this, { inflight, page: 0 })
  }

  continue(landings) {
    const move = { kind: 'continue', state: String(this.page), tidemark: null, scope: null, guardState: null }
    return this.#commit(landings, move)
  }

  /** `sweep` for a cycle that lists everything. */
  complete(landings, sweep = null) {
    return this.#commit(landings, { kind: 'complete', state: null, tidemark: null, scope: null, sweep })
  }

  async #commit(landings, move) {
    const outcome = await this.store.commit({
      lease: this.lease,
      version: this.version,
      at: Date.now(),
      owner: 'bench',
      landings,
      quarantined: [],
      columns: {},
      readAtSequence: 0,
      upstreamToleranceMs: 0,
      transition: { ...move, cycle: this.inflight.cycle, page: ++this.page },
    })
    if (outcome.kind !== 'landed') throw new Error(`A page was not committed: ${JSON.stringify(outcome)}`)
    this.version = outcome.version
    return outcome
  }

  release() {
    return this.store.release(this.lease)
  }
}
