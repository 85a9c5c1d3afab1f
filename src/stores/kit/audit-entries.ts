import type { ApiKey, AuditEntry, CycleReport, Webhook, WebhookPlace, WebhookSettings } from '../../contract/index.ts'

/** The checkpoint was moved under a cycle, which gave way: whoever reads the trail sees who moved it and whom it cost. */
export function conflictEntry(version: number, { cycle, endedAt, error }: CycleReport): AuditEntry {
  return { version, at: endedAt, actor: 'engine', action: 'conflict', reason: error!.message, cycle, state: null }
}

/** The limit of the sweep was lifted for a cycle. */
export function allowDeletesEntry(version: number, cycle: number, swept: number, by: By): AuditEntry {
  return { version, at: by.at, actor: by.actor, action: 'allow-deletes', reason: `the delete limit was lifted; ${swept} rows swept`, cycle, state: null }
}

/** Tables that are not as they are declared: values that do not fit are in `_extra`. */
export function driftEntry(version: number, at: number, words: readonly string[], cycle: number | null = null): AuditEntry {
  return { version, at, actor: 'engine', action: 'drift', reason: words.join('; '), cycle, state: null }
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

export function removeKeyEntry(id: string, by: By): AuditEntry {
  return tenantEntry('remove-key', `data key ${id}, which sealed nothing any more`, by)
}

/** What a webhook is sent, or where, was changed; null when all of it was so already. Of a URL its origin alone: the rest may be the receiver's secret. */
export function webhookEntry(before: Webhook, after: Webhook, { actor, at }: { actor: string; at: number }): AuditEntry | null {
  const moved = [
    ...(after.url === before.url ? [] : [`url ${originOf(before.url)} → ${originOf(after.url)}`]),
    ...(['databases', 'actions', 'allow'] as const).flatMap((what) => {
      const [from, to] = [before[what], after[what]].map((words) => words?.join(',') ?? 'all')
      return from === to ? [] : [`${what} ${from || 'nothing'} → ${to || 'nothing'}`]
    }),
  ]
  return moved.length === 0 ? null : { version: 0, at, actor, action: 'edit-webhook', reason: `${before.id}: ${moved.join('; ')}`, cycle: null, state: null }
}

interface By {
  readonly actor: string
  readonly at: number
}

/** The actor of a change made through the library, without a person named. */
export const PROGRAM = 'program'

export function addWebhookEntry({ id, url, databases, actions, allow }: WebhookSettings, by: By): AuditEntry {
  const filters = [['databases', databases], ['actions', actions], ['allow', allow]] as const
  const words = filters.map(([what, list]) => `${what} ${list === null ? 'all' : list.join(',') || 'nothing'}`)
  return tenantEntry('add-webhook', `${id}: url ${originOf(url)}; ${words.join('; ')}`, by)
}

export function rotateWebhookEntry(id: string, by: By): AuditEntry {
  return tenantEntry('rotate-webhook', `${id}: a new secret`, by)
}

export function removeWebhookEntry(id: string, by: By): AuditEntry {
  return tenantEntry('remove-webhook', id, by)
}

export function switchWebhookEntry(id: string, disabled: string | null, by: By): AuditEntry {
  return tenantEntry(disabled === null ? 'resume-webhook' : 'pause-webhook', disabled === null ? id : `${id}: ${disabled}`, by)
}

export function restartWebhookEntry(id: string, place: WebhookPlace | undefined, by: By): AuditEntry {
  return tenantEntry('replay-webhook', place === undefined ? id : `${id}: everything after sequence ${place.position}`, by)
}

export function newApiKeyEntry({ id, name, scopes, endsAt }: Omit<ApiKey, 'tenant'>, by: By): AuditEntry {
  const end = endsAt === null ? '' : `; ends ${new Date(endsAt).toISOString()}`
  return tenantEntry('new-api-key', `${id} (${name}): ${scopes.join(', ') || 'no scope'}${end}`, by)
}

export function endApiKeyEntry(id: string, endsAt: number, { reason, ...by }: By & { readonly reason?: string }): AuditEntry {
  return tenantEntry('end-api-key', `${id}: ends ${new Date(endsAt).toISOString()}${reason === undefined ? '' : `; ${reason}`}`, by)
}

export function beginSchemaChangeEntry(database: string, words: string, { reason, ...by }: By & { readonly reason: string }): AuditEntry {
  return tenantEntry('begin-schema-change', `${database}: ${words}${reason === '' ? '' : `; ${reason}`}`, by)
}

export function endSchemaChangeEntry(database: string, words: string, rewritten: number, by: By): AuditEntry {
  return tenantEntry('end-schema-change', `${database}: ${words}; ${rewritten} rows and versions rewritten`, by)
}

function tenantEntry(action: string, reason: string, { actor, at }: By): AuditEntry {
  return { version: 0, at, actor, action, reason, cycle: null, state: null }
}

/** The rest of a URL may be the receiver's secret. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'none'
}
