import type {
  AcquireRequest, Delivery, DeliveryNote, InboundClaim, InboundMessage, KeptMessage, Webhook, WebhookClaim, WebhookEdit, WebhookPlace, WebhookSettings, WebhookStanding,
} from '../../contract/index.ts'
import { addWebhookEntry, PROGRAM, removeWebhookEntry, restartWebhookEntry, rotateWebhookEntry, switchWebhookEntry, webhookEntry } from '../kit/audit-entries.ts'
import { edited, toDelivery, toWebhook, type DeliveryRow, type WebhookRow } from '../kit/webhook-rows.ts'
import { tenantErased } from '../kit/tenant-erased.ts'
import { withoutNul } from './arrays.ts'
import type { Session } from './connection.ts'
import { deleteUnlocked } from './delete-unlocked.ts'
import { lockTenant, NOW_MS, welcomeTenant, writeAudit } from './registry.ts'
import { checkSealingKey } from './sealed-texts.ts'

/** Where changes are sent to, how far that has come, and what came in. */

export function webhooks({ connection, tenant }: Session): Promise<Webhook[]> {
  return connection.read(tenant, async (transaction) => {
    const found = await transaction.all<WebhookRow>(`${WEBHOOKS} where w.tenant_id = $1 order by w.webhook_id`, tenant)
    return found.map(toWebhook).toSorted((a, b) => a.createdAt - b.createdAt)
  })
}

export async function putWebhook({ connection, tenant }: Session, settings: WebhookSettings, place: WebhookPlace, actor = PROGRAM): Promise<void> {
  const { id, url, databases, actions, allow, secrets, createdAt } = settings
  await connection.write(tenant, async (transaction) => {
    const epoch = await welcomeTenant(transaction)
    await checkSealingKey(transaction, secrets)
    await transaction.run(
      `insert into tidemark.webhooks (tenant_id, webhook_id, url, databases, actions, allow, secrets, created_at, position, floor, epoch) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
       on conflict (tenant_id, webhook_id) do update set url = excluded.url, databases = excluded.databases, actions = excluded.actions, allow = excluded.allow, secrets = excluded.secrets`,
      tenant, id, url, json(databases), json(actions), JSON.stringify(allow), secrets, createdAt, place.position, place.floor, epoch,
    )
    writeAudit(transaction, null, addWebhookEntry(settings, { actor, at: createdAt }))
  })
}

export function editWebhook({ connection, tenant }: Session, id: string, edit: WebhookEdit, by: { actor: string; at: number }): Promise<boolean> {
  return connection.write(tenant, async (transaction) => {
    await lockTenant(transaction)
    // The row is locked before it is read: whoever notes deliveries may be about to change where it stands.
    const locked = await transaction.get('select 1 from tidemark.webhooks where tenant_id = $1 and webhook_id = $2 for update', tenant, id)
    if (locked === undefined) return false
    const before = toWebhook((await transaction.get<WebhookRow>(`${WEBHOOKS} where w.tenant_id = $1 and w.webhook_id = $2`, tenant, id))!)
    const after = edited(before, edit)
    const entry = webhookEntry(before, after, by)
    if (entry === null) return true
    const { url, databases, actions, allow, streak, retryAt } = after
    await transaction.run(
      `update tidemark.webhooks set url = $3, databases = $4, actions = $5, allow = $6, streak = $7, retry_at = $8, epoch = epoch + 1, holder = null, held_until = null
       where tenant_id = $1 and webhook_id = $2`,
      tenant, id, url, json(databases), json(actions), JSON.stringify(allow), streak, retryAt,
    )
    writeAudit(transaction, null, entry)
    return true
  })
}

export function rotateWebhook({ connection, tenant }: Session, id: string, secrets: string, by: { actor: string; at: number; replaces: string }): Promise<boolean> {
  return connection.write(tenant, async (transaction) => {
    await lockTenant(transaction)
    await checkSealingKey(transaction, secrets)
    const changed = await transaction.run('update tidemark.webhooks set secrets = $3 where tenant_id = $1 and webhook_id = $2 and secrets = $4', tenant, id, secrets, by.replaces)
    if (changed > 0) writeAudit(transaction, null, rotateWebhookEntry(id, by))
    return changed > 0
  })
}

export function removeWebhook({ connection, tenant }: Session, id: string, by: { actor: string; at: number }): Promise<boolean> {
  return connection.write(tenant, async (transaction) => {
    await lockTenant(transaction)
    // The webhook first: whoever notes deliveries holds its row.
    const removed = await transaction.run('delete from tidemark.webhooks where tenant_id = $1 and webhook_id = $2', tenant, id)
    await transaction.run('delete from tidemark.deliveries where tenant_id = $1 and webhook_id = $2', tenant, id)
    if (removed > 0) writeAudit(transaction, null, removeWebhookEntry(id, by))
    return removed > 0
  })
}

export function restartWebhook({ connection, tenant }: Session, id: string, { actor, at, place }: { actor: string; at: number; place?: WebhookPlace }): Promise<number | null> {
  return connection.write(tenant, async (transaction) => {
    await lockTenant(transaction)
    const changed = await transaction.run(
      `update tidemark.webhooks set disabled = null, streak = 0, retry_at = null, position = coalesce($3::bigint, position), floor = coalesce($4::bigint, floor),
         epoch = epoch + 1, holder = null, held_until = null where tenant_id = $1 and webhook_id = $2`,
      tenant, id, place?.position ?? null, place?.floor ?? null,
    )
    if (changed === 0) return null
    writeAudit(transaction, null, restartWebhookEntry(id, place, { actor, at }))
    // They come again from the log.
    if (place !== undefined) await transaction.run('delete from tidemark.deliveries where tenant_id = $1 and webhook_id = $2 and sequence > $3', tenant, id, place.position)
    const { dead } = (await transaction.get<{ dead: number }>('select count(*) as dead from tidemark.deliveries where tenant_id = $1 and webhook_id = $2 and dead', tenant, id))!
    await transaction.run('update tidemark.deliveries set dead = false, attempts = 0, first_at = null, next_at = $3 where tenant_id = $1 and webhook_id = $2', tenant, id, at)
    return dead
  })
}

export function switchWebhook({ connection, tenant }: Session, id: string, disabled: string | null, by: { actor: string; at: number }): Promise<boolean> {
  return connection.write(tenant, async (transaction) => {
    await lockTenant(transaction)
    const changed = await transaction.run(
      'update tidemark.webhooks set disabled = $3, streak = 0, retry_at = null, epoch = epoch + 1, holder = null, held_until = null where tenant_id = $1 and webhook_id = $2', tenant, id, disabled,
    )
    if (changed > 0) writeAudit(transaction, null, switchWebhookEntry(id, disabled, by))
    return changed > 0
  })
}

export function webhookSecrets({ connection, tenant }: Session, { id, epoch }: WebhookClaim): Promise<string | null> {
  return connection.read(tenant, async (transaction) => {
    const found = await transaction.get<{ secrets: string }>(
      'select secrets from tidemark.webhooks where tenant_id = $1 and webhook_id = $2 and epoch = $3 and holder is not null', tenant, id, epoch,
    )
    return found?.secrets ?? null
  })
}

export function claimWebhook({ connection, tenant }: Session, id: string, request: AcquireRequest): Promise<(WebhookClaim & { webhook: Webhook }) | null> {
  return connection.write(tenant, async (transaction) => {
    const taken = await transaction.get<{ epoch: number }>(
      `update tidemark.webhooks set epoch = epoch + 1, holder = $3, held_until = ${NOW_MS} + $4
       where tenant_id = $1 and webhook_id = $2 and disabled is null and (holder is null or held_until <= ${NOW_MS} or holder = $5) returning epoch`,
      tenant, id, request.holder, request.ttlMs, request.evict ?? null,
    )
    if (taken === undefined) return null
    const found = await transaction.get<WebhookRow>(`${WEBHOOKS} where w.tenant_id = $1 and w.webhook_id = $2`, tenant, id)
    return { id, epoch: taken.epoch, webhook: toWebhook(found!) }
  })
}

export function renewWebhook({ connection, tenant }: Session, { id, epoch }: WebhookClaim, { ttlMs }: { ttlMs: number; at: number }): Promise<boolean> {
  return connection.write(tenant, async (transaction) => (await transaction.run(
    `update tidemark.webhooks set held_until = greatest(held_until, ${NOW_MS} + $4) where tenant_id = $1 and webhook_id = $2 and epoch = $3 and holder is not null`, tenant, id, epoch, ttlMs,
  )) > 0)
}

export async function releaseWebhook({ connection, tenant }: Session, { id, epoch }: WebhookClaim): Promise<void> {
  await connection.write(tenant, async (transaction) => {
    await transaction.run('update tidemark.webhooks set holder = null, held_until = null where tenant_id = $1 and webhook_id = $2 and epoch = $3', tenant, id, epoch)
  })
}

export function noteDeliveries({ connection, tenant }: Session, { id, epoch }: WebhookClaim, { standing, delivered, kept }: DeliveryNote): Promise<boolean> {
  return connection.write(tenant, async (transaction) => {
    const changed = await transaction.run(
      `update tidemark.webhooks set position = $4, floor = $5, streak = $6, retry_at = $7, succeeded_at = $8, failed_at = $9, last_status = $10, last_answer = $11, disabled = $12
       where tenant_id = $1 and webhook_id = $2 and epoch = $3 and holder is not null`,
      tenant, id, epoch, ...standingValues(standing),
    )
    if (changed === 0) return false
    for (const sequence of delivered) transaction.send('delete from tidemark.deliveries where tenant_id = $1 and webhook_id = $2 and sequence = $3', tenant, id, sequence)
    for (const delivery of kept) {
      transaction.send(
        `insert into tidemark.deliveries (tenant_id, webhook_id, sequence, message_id, database_name, key, body, attempts, first_at, next_at, dead, last_status, last_answer)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
         on conflict (tenant_id, webhook_id, sequence) do update set attempts = excluded.attempts, first_at = excluded.first_at, next_at = excluded.next_at,
           dead = excluded.dead, last_status = excluded.last_status, last_answer = excluded.last_answer`,
        tenant, id, delivery.sequence, delivery.messageId, delivery.database, delivery.key, delivery.body, delivery.attempts, delivery.firstAt, delivery.nextAt,
        delivery.dead, delivery.lastStatus, withoutNul(delivery.lastAnswer),
      )
    }
    return true
  })
}

export function deliveries({ connection, tenant }: Session, { webhook, dead, limit }: { webhook: string; dead: boolean; limit: number }): Promise<Delivery[]> {
  return connection.read(tenant, async (transaction) => {
    const found = await transaction.all<DeliveryRow>(
      'select * from tidemark.deliveries where tenant_id = $1 and webhook_id = $2 and dead = $3 order by sequence limit $4', tenant, webhook, dead, limit,
    )
    return found.map(toDelivery)
  })
}

export function claimInbound({ connection, tenant }: Session, { source, id }: InboundMessage, { at, busyMs, forgetBefore, payload }: InboundClaim): Promise<'new' | 'busy' | 'done'> {
  return connection.write(tenant, async (transaction) => {
    // Locked whether erased or not, so that an erasure comes before all of this or after.
    const found = await transaction.get<{ erased: boolean }>('select erased from tidemark.tenants where tenant_id = $1 for share', tenant)
    if (found?.erased === true) throw tenantErased(tenant)
    // One statement decides: of any number that come at once, one inserts or takes over.
    const taken = await transaction.run(
      `insert into tidemark.inbound as i (tenant_id, source, message_id, at, done, payload) values ($1, $2, $3, $4, false, $6)
       on conflict (tenant_id, source, message_id) do update set at = excluded.at, done = false, payload = case when i.done then excluded.payload else i.payload end
       where (not i.done and i.at <= $5) or (i.done and i.at < $7)`, tenant, source, id, at, at - busyMs, payload ?? null, forgetBefore,
    )
    await deleteUnlocked(transaction, 'inbound', 'source = $2 and at < $3 and done', source, forgetBefore)
    if (taken > 0) return 'new'
    const claimed = await transaction.get<{ done: boolean }>('select done from tidemark.inbound where tenant_id = $1 and source = $2 and message_id = $3', tenant, source, id)
    return claimed?.done === true ? 'done' : 'busy'
  })
}

export function keptInbound({ connection, tenant }: Session, { source, before, limit }: { source: string; before: number; limit: number }): Promise<KeptMessage[]> {
  return connection.read(tenant, (transaction) => transaction.all<KeptMessage>(
    'select message_id as id, payload from tidemark.inbound where tenant_id = $1 and source = $2 and at <= $3 and payload is not null order by at, message_id limit $4', tenant, source, before, limit,
  ))
}

export async function settleInbound({ connection, tenant }: Session, { source, id }: InboundMessage, { done, at }: { done: boolean; at: number }): Promise<void> {
  await connection.write(tenant, async (transaction) => {
    if (done) await transaction.run('update tidemark.inbound set done = true, at = $4, payload = null where tenant_id = $1 and source = $2 and message_id = $3', tenant, source, id, at)
    else await transaction.run('delete from tidemark.inbound where tenant_id = $1 and source = $2 and message_id = $3 and not done', tenant, source, id)
  })
}

const WEBHOOKS = `select w.*,
  (select count(*) from tidemark.deliveries d where d.tenant_id = w.tenant_id and d.webhook_id = w.webhook_id and not d.dead) as waiting,
  (select count(*) from tidemark.deliveries d where d.tenant_id = w.tenant_id and d.webhook_id = w.webhook_id and d.dead) as dead,
  (select min(next_at) from tidemark.deliveries d where d.tenant_id = w.tenant_id and d.webhook_id = w.webhook_id and not d.dead) as due_at
  from tidemark.webhooks w`

function standingValues({ position, floor, streak, retryAt, succeededAt, failedAt, lastStatus, lastAnswer, disabled }: WebhookStanding): Array<string | number | null> {
  return [position, floor, streak, retryAt, succeededAt, failedAt, lastStatus, withoutNul(lastAnswer), disabled]
}

function json(value: readonly string[] | null): string | null {
  return value === null ? null : JSON.stringify(value)
}
