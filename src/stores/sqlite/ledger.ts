import type {
  Acquired, AcquireRequest, ApiKey, AuditEntry, BeginRequest, Begun, ChangesQuery, Checkpoint, Commit, CommitOutcome, Compacted, Consumer, ConsumerName,
  CompactRequest, CursorSecret, CursorSecretOffer, CycleRecord, CycleReport, DatabaseInfo, Delivery, DeliveryNote, Erased, FeedPage, FeedQuery,
  Held, InboundClaim, InboundMessage, KeptMessage, Lease, LogEntry, Occupied, PauseRequest, Pauses, QuarantineEntry, Row, SealedText, Signal, SlotRequest, Slots, Standings, StandingsQuery, SyncRef, Trail, TrailQuery, Webhook, WebhookClaim, WebhookEdit, WebhookPlace,
  WebhookSettings, WrappedKey,
} from '../../contract/index.ts'
import * as keys from './api-keys.ts'
import { commit } from './commit.ts'
import type { Session } from './connection.ts'
import * as readers from './consumers.ts'
import * as served from './feed.ts'
import * as slots from './pacers.ts'
import { notePause, pauses } from './pauses.ts'
import * as reading from './reading.ts'
import * as registry from './registry.ts'
import * as sealed from './sealed-texts.ts'
import { standings } from './standings.ts'
import * as tenants from './tenants.ts'
import * as hooks from './webhooks.ts'

/** The store's methods, at once instead of promised: SQLite answers in the thread that asks. */
export class Ledger {
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  tenants(): string[] {
    return this.#read(() => tenants.tenants(this.#session))
  }

  erase(by: { actor: string; at: number }): Erased | Occupied {
    return tenants.erase(this.#session, by)
  }

  acquire(ref: SyncRef, request: AcquireRequest): Acquired | Held {
    return registry.acquire(this.#session, ref, request)
  }

  renew(lease: Lease, request: { ttlMs: number; at: number }): boolean {
    return registry.renew(this.#session, lease, request)
  }

  release(lease: Lease, report?: CycleReport): void {
    registry.release(this.#session, lease, report)
  }

  begin(lease: Lease, request: BeginRequest): Begun | null {
    return registry.begin(this.#session, lease, request)
  }

  commit(request: Commit): CommitOutcome {
    return commit(this.#session, request)
  }

  read(ref: SyncRef, options?: { forRepair?: boolean }): Checkpoint {
    return this.#read(() => registry.read(this.#session, ref, options))
  }

  standings(query: StandingsQuery): Standings {
    return this.#read(() => standings(this.#session, query))
  }

  syncs(): SyncRef[] {
    return this.#read(() => registry.syncs(this.#session))
  }

  signal(ref: SyncRef, signal: Signal): void {
    registry.signal(this.#session, ref, signal)
  }

  audit(ref: SyncRef, { limit = 100 }: { limit?: number } = {}): AuditEntry[] {
    return this.#read(() => registry.audit(this.#session, ref, limit))
  }

  trail(query: TrailQuery): Trail {
    return this.#read(() => registry.trail(this.#session, query))
  }

  wrappingKeys(): string[] {
    return this.#read(() => registry.wrappingKeys(this.#session))
  }

  dataKeys(): WrappedKey[] {
    return this.#read(() => registry.dataKeys(this.#session))
  }

  putDataKey(key: WrappedKey, by: { actor: string; at: number; replaces?: string }): boolean {
    return registry.putDataKey(this.#session, key, by)
  }

  sealedTexts(query: { except: string; limit: number }): SealedText[] {
    return this.#read(() => sealed.sealedTexts(this.#session, query))
  }

  reseal(text: SealedText, newText: string): boolean {
    return sealed.reseal(this.#session, text, newText)
  }

  removeDataKey(id: string, by: { actor: string; at: number }): boolean {
    return sealed.removeDataKey(this.#session, id, by)
  }

  cycles(ref: SyncRef | null, { limit = 100 }: { limit?: number } = {}): CycleRecord[] {
    return this.#read(() => registry.cycles(this.#session, ref, limit))
  }

  takeSlots(request: SlotRequest): Slots {
    return slots.takeSlots(this.#session, request)
  }

  pacers(worker: string): Record<string, number> {
    return this.#read(() => slots.pacers(this.#session, worker))
  }

  notePause(request: PauseRequest): void {
    notePause(this.#session, request)
  }

  pauses(query: { worker: string; at: number }): Pauses {
    return this.#read(() => pauses(this.#session, query))
  }

  position(): number {
    return this.#read(() => registry.readSequence(this.#session))
  }

  changes(query: ChangesQuery): LogEntry[] {
    return this.#read(() => reading.changes(this.#session, query))
  }

  rows(query: { database: string; after?: string; limit: number }): Row[] {
    return this.#read(() => reading.rows(this.#session, query))
  }

  row(database: string, key: string): Row | null {
    return this.#read(() => reading.row(this.#session, database, key))
  }

  history(database: string, key: string): LogEntry[] {
    return this.#read(() => reading.history(this.#session, database, key))
  }

  databases(): DatabaseInfo[] {
    return this.#read(() => reading.databases(this.#session))
  }

  databaseNames(): string[] {
    return this.#read(() => reading.databaseNames(this.#session))
  }

  quarantined(query: { ref?: SyncRef; limit?: number } = {}): QuarantineEntry[] {
    return this.#read(() => reading.quarantined(this.#session, query))
  }

  feed(query: FeedQuery): FeedPage {
    return this.#read(() => served.feed(this.#session, query))
  }

  sequenceBefore(time: number): number {
    return this.#read(() => served.sequenceBefore(this.#session, time))
  }

  compact(request: CompactRequest): Compacted {
    return served.compact(this.#session, request)
  }

  cursorSecrets(offer: CursorSecretOffer): CursorSecret[] {
    return served.cursorSecrets(this.#session, offer)
  }

  apiKey(id: string): ApiKey | null {
    return this.#read(() => keys.apiKey(this.#session, id))
  }

  apiKeys(): ApiKey[] {
    return this.#read(() => keys.apiKeys(this.#session))
  }

  addApiKey(key: Omit<ApiKey, 'tenant'>, by?: string): void {
    keys.addApiKey(this.#session, key, by)
  }

  endApiKey(id: string, endsAt: number, by: { actor: string; at: number; reason?: string }): boolean {
    return keys.endApiKey(this.#session, id, endsAt, by)
  }

  consumers(): Consumer[] {
    return this.#read(() => readers.consumers(this.#session))
  }

  putConsumer(consumer: Consumer, bounds: { ownedMax: number }): boolean {
    return readers.putConsumer(this.#session, consumer, bounds)
  }

  removeConsumer(name: ConsumerName): boolean {
    return readers.removeConsumer(this.#session, name)
  }

  countRequests(window: number, counts: ReadonlyArray<readonly [string, number]>): number[] {
    return readers.countRequests(this.#session, window, counts)
  }

  webhooks(): Webhook[] {
    return this.#read(() => hooks.webhooks(this.#session))
  }

  putWebhook(settings: WebhookSettings, place: WebhookPlace, by?: string): void {
    hooks.putWebhook(this.#session, settings, place, by)
  }

  editWebhook(id: string, edit: WebhookEdit, by: { actor: string; at: number }): boolean {
    return hooks.editWebhook(this.#session, id, edit, by)
  }

  rotateWebhook(id: string, secrets: string, by: { actor: string; at: number; replaces: string }): boolean {
    return hooks.rotateWebhook(this.#session, id, secrets, by)
  }

  removeWebhook(id: string, by: { actor: string; at: number }): boolean {
    return hooks.removeWebhook(this.#session, id, by)
  }

  restartWebhook(id: string, request: { actor: string; at: number; place?: WebhookPlace }): number | null {
    return hooks.restartWebhook(this.#session, id, request)
  }

  switchWebhook(id: string, disabled: string | null, by: { actor: string; at: number }): boolean {
    return hooks.switchWebhook(this.#session, id, disabled, by)
  }

  webhookSecrets(claim: WebhookClaim): string | null {
    return this.#read(() => hooks.webhookSecrets(this.#session, claim))
  }

  claimWebhook(id: string, request: AcquireRequest): (WebhookClaim & { webhook: Webhook }) | null {
    return hooks.claimWebhook(this.#session, id, request)
  }

  renewWebhook(claim: WebhookClaim, request: { ttlMs: number; at: number }): boolean {
    return hooks.renewWebhook(this.#session, claim, request)
  }

  releaseWebhook(claim: WebhookClaim): void {
    hooks.releaseWebhook(this.#session, claim)
  }

  noteDeliveries(claim: WebhookClaim, note: DeliveryNote): boolean {
    return hooks.noteDeliveries(this.#session, claim, note)
  }

  deliveries(query: { webhook: string; dead: boolean; limit: number }): Delivery[] {
    return this.#read(() => hooks.deliveries(this.#session, query))
  }

  claimInbound(message: InboundMessage, claim: InboundClaim): 'new' | 'busy' | 'done' {
    return hooks.claimInbound(this.#session, message, claim)
  }

  keptInbound(query: { source: string; before: number; limit: number }): KeptMessage[] {
    return this.#read(() => hooks.keptInbound(this.#session, query))
  }

  settleInbound(message: InboundMessage, settled: { done: boolean; at: number }): void {
    hooks.settleInbound(this.#session, message, settled)
  }

  #read<T>(body: () => T): T {
    return this.#session.connection.read(body)
  }
}
