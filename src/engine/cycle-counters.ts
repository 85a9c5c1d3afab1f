import type { LandingCounts } from '../contract/index.ts'

/** Totals of one run. */
export class CycleCounters {
  pages = 0
  retries = 0
  waitedMs = 0
  readonly counts: LandingCounts = noCounts()

  addPage(counts: LandingCounts): void {
    this.pages++
    for (const name of Object.keys(counts) as Array<keyof LandingCounts>) this.counts[name] += counts[name]
  }

  addRetry(waitMs: number): void {
    this.retries++
    this.waitedMs += waitMs
  }

  totals(): { pages: number; retries: number; waitedMs: number; counts: LandingCounts } {
    return { pages: this.pages, retries: this.retries, waitedMs: this.waitedMs, counts: { ...this.counts } }
  }
}

export function noCounts(): LandingCounts {
  return { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 }
}
