import { getEventListeners } from 'node:events'
import type { LinkedAbortController } from '../values/linked-abort-controller.ts'

/**
 * Releases the controller of work that has ended, unless a listener still waits for its signal: a source may close a
 * connection of its first page when the cycle ends. Without this, a cycle would keep every page it has read.
 */
export function unlinkUnused(controller: LinkedAbortController): void {
  if (getEventListeners(controller.signal, 'abort').length === 0) controller.unlink()
}
