import type {
  ApiKey,
  AuditEntry,
  ConnectionStatus,
  CycleReport,
  DestinationSignal,
  Verification,
  VerificationReport,
  Webhook,
  WebhookCursor,
  WebhookSettings,
} from '../../contract/index.ts'

/** The checkpoint changed during a cycle, and the cycle stopped. The entry names the cycle that lost. */
export function createConflictAuditEntry(version: number, { cycle, endedAt, error }: CycleReport): AuditEntry {
  return { version, at: endedAt, actor: 'engine', action: 'conflict', reason: error?.message ?? '', cycle, state: null }
}

/** The delete limit of the sweep was lifted for one cycle. */
export function createAllowDeletesAuditEntry(
  version: number,
  cycle: number,
  swept: number,
  by: AuditActor,
): AuditEntry {
  return {
    version,
    at: by.at,
    actor: by.actor,
    action: 'allow-deletes',
    reason: `the delete limit was lifted; ${swept} rows swept`,
    cycle,
    state: null,
  }
}

/** Tables differ from their declared schema; values that do not fit are in `_extra`. */
export function createDriftAuditEntry(
  version: number,
  at: number,
  descriptions: readonly string[],
  cycle: number | null = null,
): AuditEntry {
  return { version, at, actor: 'engine', action: 'drift', reason: descriptions.join('; '), cycle, state: null }
}

/** The first entry of the audit log after an erasure: it records that the tenant existed and who erased it. */
export function createEraseAuditEntry(
  { syncs, entries }: { syncs: number; entries: number },
  { actor, at }: { actor: string; at: number },
): AuditEntry {
  return {
    version: 0,
    at,
    actor,
    action: 'erase',
    reason: `all data of the tenant: ${syncs} syncs, ${entries} database entries`,
    cycle: null,
    state: null,
  }
}

/** A data key of the tenant was created, or wrapped by another key. */
export function createDataKeyAuditEntry(
  id: string,
  wrappedBy: string,
  { actor, at, replaces }: { actor: string; at: number; replaces?: string | undefined },
): AuditEntry {
  const [action, reason] =
    replaces === undefined
      ? ['new-key', `data key ${id}, wrapped by ${wrappedBy}`]
      : ['rewrap-key', `data key ${id}, wrapped by ${wrappedBy} instead of ${replaces}`]
  return { version: 0, at, actor, action, reason, cycle: null, state: null }
}

/** The first column key of the tenant was created. */
export function createColumnKeyAuditEntry(id: string, by: AuditActor): AuditEntry {
  return createTenantAuditEntry('new-column-key', `column key ${id}`, by)
}

/** The stored rows of a database follow other column rules from now on. */
export function createColumnRulesAuditEntry(
  sync: string,
  database: string,
  { reason, ...by }: AuditActor & { readonly reason: string },
): AuditEntry {
  return createTenantAuditEntry('column-rules', `${database} of ${sync}: ${reason}`, by)
}

/** Encrypted values were shown. */
export function createRevealAuditEntry({ reason, ...by }: AuditActor & { readonly reason: string }): AuditEntry {
  return createTenantAuditEntry('reveal', reason, by)
}

export function createRemoveDataKeyAuditEntry(id: string, by: AuditActor): AuditEntry {
  return createTenantAuditEntry('remove-key', `data key ${id}, which no longer seals any text`, by)
}

/**
 * Records a change of a webhook's settings; null when nothing changed. Only the origin of a URL is recorded, because
 * the rest may be the receiver's secret.
 */
export function createEditWebhookAuditEntry(
  before: Webhook,
  after: Webhook,
  { actor, at }: { actor: string; at: number },
): AuditEntry | null {
  const changes = [
    ...(after.url === before.url ? [] : [`url ${originOf(before.url)} → ${originOf(after.url)}`]),
    ...(['databases', 'actions', 'allow'] as const).flatMap((setting) => {
      const [from, to] = [before[setting], after[setting]].map((values) => values?.join(',') ?? 'all')
      return from === to ? [] : [`${setting} ${from || 'nothing'} → ${to || 'nothing'}`]
    }),
  ]
  return changes.length === 0
    ? null
    : {
        version: 0,
        at,
        actor,
        action: 'edit-webhook',
        reason: `${before.id}: ${changes.join('; ')}`,
        cycle: null,
        state: null,
      }
}

interface AuditActor {
  readonly actor: string
  readonly at: number
}

/** The actor of a change made through the library without a named person. */
export const PROGRAM_ACTOR = 'program'

export function createAddWebhookAuditEntry(
  { id, url, databases, actions, allow }: WebhookSettings,
  by: AuditActor,
): AuditEntry {
  const filters = [
    ['databases', databases],
    ['actions', actions],
    ['allow', allow],
  ] as const
  const descriptions = filters.map(
    ([setting, list]) => `${setting} ${list === null ? 'all' : list.join(',') || 'nothing'}`,
  )
  return createTenantAuditEntry('add-webhook', `${id}: url ${originOf(url)}; ${descriptions.join('; ')}`, by)
}

export function createRotateWebhookAuditEntry(id: string, by: AuditActor): AuditEntry {
  return createTenantAuditEntry('rotate-webhook', `${id}: a new secret`, by)
}

export function createRemoveWebhookAuditEntry(id: string, by: AuditActor): AuditEntry {
  return createTenantAuditEntry('remove-webhook', id, by)
}

export function createSwitchWebhookAuditEntry(id: string, disabled: string | null, by: AuditActor): AuditEntry {
  return createTenantAuditEntry(
    disabled === null ? 'resume-webhook' : 'pause-webhook',
    disabled === null ? id : `${id}: ${disabled}`,
    by,
  )
}

export function createRestartWebhookAuditEntry(
  id: string,
  cursor: WebhookCursor | undefined,
  by: AuditActor,
): AuditEntry {
  return createTenantAuditEntry(
    'replay-webhook',
    cursor === undefined ? id : `${id}: everything after sequence ${cursor.sequence}`,
    by,
  )
}

export function createNewApiKeyAuditEntry(
  { id, name, scopes, endsAt }: Omit<ApiKey, 'tenant'>,
  by: AuditActor,
): AuditEntry {
  const end = endsAt === null ? '' : `; ends ${new Date(endsAt).toISOString()}`
  return createTenantAuditEntry('new-api-key', `${id} (${name}): ${scopes.join(', ') || 'no scope'}${end}`, by)
}

export function createEndApiKeyAuditEntry(
  id: string,
  endsAt: number,
  { reason, ...by }: AuditActor & { readonly reason?: string },
): AuditEntry {
  return createTenantAuditEntry(
    'end-api-key',
    `${id}: ends ${new Date(endsAt).toISOString()}${reason === undefined ? '' : `; ${reason}`}`,
    by,
  )
}

export function createBeginSchemaChangeAuditEntry(
  database: string,
  description: string,
  { reason, ...by }: AuditActor & { readonly reason: string },
): AuditEntry {
  return createTenantAuditEntry(
    'begin-schema-change',
    `${database}: ${description}${reason === '' ? '' : `; ${reason}`}`,
    by,
  )
}

export function createEndSchemaChangeAuditEntry(
  database: string,
  description: string,
  rewritten: number,
  by: AuditActor,
): AuditEntry {
  return createTenantAuditEntry(
    'end-schema-change',
    `${database}: ${description}; ${rewritten} rows and versions rewritten`,
    by,
  )
}

export function createDestinationAuditEntry(
  name: string,
  action: DestinationSignal['kind'] | 'remove',
  detail: string,
  by: AuditActor,
): AuditEntry {
  return createTenantAuditEntry(`${action}-destination`, detail === '' ? name : `${name}: ${detail}`, by)
}

export function createConnectionAuditEntry(
  name: string,
  action: 'add' | 'change' | 'authorize' | 'remove' | ConnectionStatus,
  detail: string,
  by: AuditActor,
): AuditEntry {
  return createTenantAuditEntry(`connection-${action}`, detail === '' ? name : `${name}: ${detail}`, by)
}

export function createVerifyAuditEntry(
  { id, database, actor }: Pick<Verification, 'id' | 'database' | 'actor'>,
  report: VerificationReport,
): AuditEntry {
  return createTenantAuditEntry('verify', `verification ${id} of ${database}: ${describeReport(report)}`, {
    actor,
    at: report.endedAt,
  })
}

function describeReport({
  method,
  rows,
  requests,
  differences,
  unsettled,
  repaired,
  ...report
}: VerificationReport): string {
  if (report.error !== null) return `failed with ${report.error.code}`
  const counts = Object.entries({ ...differences, unsettled, repaired }).flatMap(([name, count]) =>
    count === 0 ? [] : [`${count} ${name}`],
  )
  const result = counts.length === 0 ? 'equal' : counts.join(', ')
  const gap = report.incomplete === null ? '' : `; incomplete (${report.incomplete})`
  return `${result}; ${rows} rows by ${method}, ${requests} requests${gap}`
}

function createTenantAuditEntry(action: string, reason: string, { actor, at }: AuditActor): AuditEntry {
  return { version: 0, at, actor, action, reason, cycle: null, state: null }
}

/** Only the origin: the rest of a URL may be the receiver's secret. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'none'
}
