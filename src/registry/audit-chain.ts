import { hash } from 'node:crypto'
import type { AuditEntry } from '../contract/index.ts'

export interface AuditChainFields extends AuditEntry {
  readonly worker: string | null
  readonly sync: string | null
  readonly epoch: number
}

/** The text that an entry adds to the hash chain: all its fields. */
export function serializeLink({
  worker,
  sync,
  epoch,
  version,
  at,
  actor,
  action,
  reason,
  cycle,
  state,
}: AuditChainFields): string {
  return JSON.stringify([worker, sync, epoch, version, at, actor, action, reason, cycle, state])
}

/** The hash of an entry covers the previous one, so that changing, removing, adding or moving an entry is detected. */
export function hashLink(previous: string, text: string): string {
  return hash('sha256', previous + text, 'hex')
}
