import { hash } from 'node:crypto'
import { recordOf } from './records.mjs'

/** Pages as the engine hands them over. */
export function landings(from, count, version = 0) {
  return Array.from({ length: count }, (_, n) => {
    const record = recordOf(from + n, version)
    const text = JSON.stringify(record)
    return { type: 'upsert', database: 'accounts', key: record.id, text, hash: hash('sha1', text, 'base64').slice(0, 16), cursor: null, upstreamAt: null }
  })
}

/** A sync that lands them, with nothing around it. */
export class Lander {
  static async take(store, sync) {
    const { lease, checkpoint } = await store.acquire({ worker: 'bench', sync }, { holder: 'bench', ttlMs: 3_600_000, at: Date.now() })
    return new Lander(store, lease, checkpoint.version)
  }

  constructor(store, lease, version) {
    Object.assign(this, { store, lease, version })
  }

  /** One page, and the cycle with it; the position it leads to. */
  async cycle(landings) {
    const { inflight } = await this.store.begin(this.lease, { at: Date.now(), mode: 'incremental', trigger: 'bench', fresh: false, databases: ['accounts'] })
    const outcome = await this.store.commit({
      lease: this.lease, version: this.version, at: Date.now(), owner: 'bench', landings, quarantined: [], columns: {}, readFrom: 0, upstreamToleranceMs: 0,
      move: { kind: 'complete', cycle: inflight.cycle, page: 1, state: null, tidemark: null, scope: null, sweep: null },
    })
    if (outcome.kind !== 'landed') throw new Error(outcome.kind)
    this.version = outcome.version
    return outcome.position
  }

  release() {
    return this.store.release(this.lease)
  }
}
