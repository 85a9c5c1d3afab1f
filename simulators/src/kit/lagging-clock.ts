import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from './ports.ts'

/** The real clock minus a settable offset: the initial records of an account were not all written just now. */
export class LaggingClock implements Clock {
  lagMs: number

  constructor(behindMs: number) {
    this.lagMs = behindMs
  }

  now(): number {
    return Date.now() - this.lagMs
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await sleep(ms, undefined, { ...(signal !== undefined && { signal }) })
  }
}
