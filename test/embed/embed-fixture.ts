import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Change, Page } from '../../src/contract/index.ts'
import { createTidemark, type Tidemark } from '../../src/embed/index.ts'
import type { TidemarkOptions } from '../../src/embed/options.ts'
import { Worker, type WorkerOptions } from '../../src/worker/worker.ts'

/** A source in memory: a replace sync `people` lists its records. */
export class PeopleFixture {
  readonly records = new Map<string, { readonly name: string }>()
  readonly worker: Worker
  pages = 0
  /** Runs before a page is returned. */
  beforePage: () => Promise<void> | void = () => {}

  constructor(options: WorkerOptions & { readonly schedule?: string } = {}) {
    const { schedule = 'manual', ...given } = options
    this.worker = new Worker({ name: 'staff', ...given })
    const people = this.worker.database('people')
    this.worker.sync<{ after: number }>('people', {
      database: people,
      mode: 'replace',
      schedule,
      execute: async (state) => {
        this.pages++
        await this.beforePage()
        return this.#page(state?.after ?? 0)
      },
    })
  }

  /** One record per page. */
  #page(after: number): Page<{ after: number }> {
    const all = [...this.records]
    const changes = all.slice(after, after + 1).map(([key, record]): Change => ({ type: 'upsert', key, record }))
    const hasMore = after + 1 < all.length
    return { changes, hasMore, ...(hasMore && { nextState: { after: after + 1 } }) }
  }
}

export function storeUrl(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-embed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return `sqlite:${join(folder, 'copy.db')}`
}

export function openTidemark(options: Partial<TidemarkOptions> & Pick<TidemarkOptions, 'workers'>): Tidemark {
  const tidemark = createTidemark({ store: storeUrl(), log: 'silent', ...options })
  onTestFinished(() => tidemark.stop())
  return tidemark
}
