import { hash } from 'node:crypto'
import type { AuditEntry } from '../contract/index.ts'

export interface AuditChainFields extends AuditEntry {
  readonly worker: string | null
  readonly sync: string | null
  readonly epoch: number
}

/** What an entry adds to the chain: every field of it, in one text. */
export function serializeLink({ worker, sync, epoch, version, at, actor, action, reason, cycle, state }: AuditChainFields): string {
  return JSON.stringify([worker, sync, epoch, version, at, actor, action, reason, cycle, state])
}

/** The hash of an entry covers the one before it, so that none can be changed, left out, added or moved unnoticed. */
export function hashLink(previous: string, text: string): string {
  return hash('sha256', previous + text, 'hex')
}
