import type { AuditEntry, CycleReport, Webhook } from '../../contract/index.ts'

/** The checkpoint was moved under a cycle, which gave way: whoever reads the trail sees who moved it and whom it cost. */
export function conflictEntry(version: number, { cycle, endedAt, error }: CycleReport): AuditEntry {
  return { version, at: endedAt, actor: 'engine', action: 'conflict', reason: error!.message, cycle, state: null }
}

/** What was there is gone; that it was, and who ended it, is the first entry of the trail from now on. */
export function eraseEntry({ syncs, entries }: { syncs: number; entries: number }, { actor, at }: { actor: string; at: number }): AuditEntry {
  return { version: 0, at, actor, action: 'erase', reason: `everything of the tenant: ${syncs} syncs, ${entries} entries of the database`, cycle: null, state: null }
}

/** A data key of the tenant was made, or wrapped by another key. */
export function keyEntry(id: string, wrappedBy: string, { actor, at, replaces }: { actor: string; at: number; replaces?: string | undefined }): AuditEntry {
  const [action, reason] = replaces === undefined ? ['new-key', `data key ${id}, wrapped by ${wrappedBy}`] : ['rewrap-key', `data key ${id}, wrapped by ${wrappedBy} instead of ${replaces}`]
  return { version: 0, at, actor, action, reason, cycle: null, state: null }
}

/** What a webhook is sent, or where, was changed; null when all of it was so already. Of a URL its origin alone: the rest may be the receiver's secret. */
export function webhookEntry(before: Webhook, after: Webhook, { actor, at }: { actor: string; at: number }): AuditEntry | null {
  const moved = [
    ...(after.url === before.url ? [] : [`url ${new URL(before.url).origin} → ${new URL(after.url).origin}`]),
    ...(['databases', 'actions', 'allow'] as const).flatMap((what) => {
      const [from, to] = [before[what], after[what]].map((words) => words?.join(',') ?? 'all')
      return from === to ? [] : [`${what} ${from || 'nothing'} → ${to || 'nothing'}`]
    }),
  ]
  return moved.length === 0 ? null : { version: 0, at, actor, action: 'edit-webhook', reason: `${before.id}: ${moved.join('; ')}`, cycle: null, state: null }
}
