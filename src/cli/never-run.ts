import type { Checkpoint } from '../contract/index.ts'

/** Of a sync that no store knows yet. */
export const NEVER_RUN: Checkpoint = {
  version: 0, committed: null, committedBy: null, inflight: null, scope: null, tidemark: null, paused: false, triggeredAt: null,
  failures: 0, lastError: null, retryAt: null, lastSuccessAt: null, heldBy: null, heldUntil: null,
}
