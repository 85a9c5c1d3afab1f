import { SyncError, type Change, type JsonValue, type Store, type TableShape } from '../contract/index.ts'
import { createTemporaryCipher, openColumnCipher, type ColumnCipher } from '../registry/column-cipher.ts'
import type { RandomBytes } from '../registry/seal.ts'
import { describeKeyField } from '../transforms/check-column-rules.ts'
import { needsColumnKey, type ColumnPlan } from '../transforms/column-rules.ts'
import { headOf } from '../transforms/field-paths.ts'
import { TransformError, transformRecord } from '../transforms/transform-record.ts'
import { findHiddenKeyField, transformShape } from '../transforms/transform-shape.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import { getSerializedRecord, type SerializedShape } from '../values/serialized-upsert.ts'
import { required } from '../values/required.ts'
import type { CheckedPage } from './check-page.ts'
import type { DatabasePlan, SyncPlan } from './sync-plan.ts'

type Upsert = Extract<Change, { type: 'upsert' }>
type Invalid = Extract<Change, { type: 'invalid' }>

/**
 * Applies the column rules of a sync's databases to its pages, before anything else reads the records. No original
 * value of a dropped, hashed, masked or encrypted field leaves this class.
 */
export class PageTransformer {
  readonly #sync: string
  readonly #databases: readonly DatabasePlan[]
  readonly #openCipher: () => Promise<ColumnCipher>
  #cipher: ColumnCipher | null = null

  private constructor({ sync, databases }: SyncPlan, openCipher: () => Promise<ColumnCipher>) {
    this.#sync = sync
    this.#databases = databases
    this.#openCipher = openCipher
  }

  static create(plan: SyncPlan, store: Store, now: () => number): PageTransformer {
    return new PageTransformer(plan, () => openColumnCipher(store, { actor: 'engine', at: now() }))
  }

  /** For values that are shown and not stored: without a stored key, one is made up. */
  static createPreview(plan: SyncPlan, store: Store | null, random: RandomBytes): PageTransformer {
    return new PageTransformer(plan, async () =>
      store === null || (await store.columnKeys()).length === 0
        ? createTemporaryCipher(store?.tenant ?? '', random)
        : openColumnCipher(store, { actor: 'preview', at: 0 }),
    )
  }

  async transformPage(page: CheckedPage): Promise<CheckedPage> {
    if (this.#databases.every(({ columns }) => columns === undefined)) return page
    return {
      ...page,
      changes: await this.transformChanges(page.changes),
      tables: page.tables.map((shape) => this.#transformTable(shape)),
    }
  }

  async transformChanges(changes: readonly Change[]): Promise<readonly Change[]> {
    const needsKey = this.#databases.some(({ columns }) => columns !== undefined && needsColumnKey(columns))
    if (needsKey) this.#cipher ??= await this.#openCipher()
    const keyMatches = new KeyMatches(this.#sync)
    const transformed = changes.map((change) => this.#transformChange(change, keyMatches))
    keyMatches.assertNone()
    return transformed
  }

  #transformChange(change: Change, keyMatches: KeyMatches): Change {
    const plan = this.#findPlan(change)
    if (plan === undefined || typeof change !== 'object' || change === null) return change
    // It is not known which of the rules would apply to what the source has of the record.
    if (change.type === 'invalid') return { ...change, raw: null }
    if (change.type !== 'upsert' || isUntouched(plan, change)) return change
    const database = change.database ?? required(this.#databases[0], 'database of the sync').name
    try {
      const { record, hidden } = transformRecord(plan, readRecord(change), {
        database,
        key: String(change.key),
        cipher: this.#cipher,
      })
      keyMatches.add(database, String(change.key), hidden)
      return withoutHiddenFields({ ...change, record }, [...hidden.values()].flat().map(String))
    } catch (error) {
      if (!(error instanceof TransformError)) throw error
      const invalid: Invalid = {
        type: 'invalid',
        key: change.key,
        reason: `columns: ${error.message}`,
        raw: error.rest,
      }
      return change.database === undefined ? invalid : { ...invalid, database: change.database }
    }
  }

  #transformTable(shape: TableShape): TableShape {
    const plan = this.#findPlan(shape)
    if (plan === undefined) return shape
    const hidden = findHiddenKeyField(plan, shape)
    if (hidden !== null) throw createKeyError(this.#sync, hidden)
    return transformShape(plan, shape)
  }

  #findPlan({ database }: { database?: string | undefined }): ColumnPlan | undefined {
    return (database === undefined ? this.#databases[0] : this.#databases.find(({ name }) => name === database))
      ?.columns
  }
}

/** The record of a serialized upsert is parsed here. */
function readRecord(change: Upsert): unknown {
  try {
    return change.record
  } catch {
    throw new TransformError('the text of the record is not valid JSON', null)
  }
}

const touchedShapes = new WeakMap<ColumnPlan, WeakMap<SerializedShape, boolean>>()

/** Whether no rule concerns the fields of a serialized record, so that its text can be stored as it is. */
function isUntouched(plan: ColumnPlan, change: Upsert): boolean {
  const shape = getSerializedRecord(change)?.shape
  // Only the fields of a trusted shape are known without parsing.
  if (shape?.isTrusted !== true || plan.map !== null) return false
  let known = touchedShapes.get(plan)
  if (known === undefined) touchedShapes.set(plan, (known = new WeakMap()))
  let isTouched = known.get(shape)
  if (isTouched === undefined) known.set(shape, (isTouched = isShapeTouched(plan, shape)))
  return !isTouched
}

function isShapeTouched({ select, drop, cast, protect, rename }: ColumnPlan, { columns }: SerializedShape): boolean {
  const paths = [...drop, ...[...cast, ...rename].map(([path]) => path), ...protect.map(({ path }) => path)]
  const targets = rename.map(([, to]) => headOf(to))
  return columns.some(
    ({ name }) =>
      select?.includes(name) === false ||
      targets.includes(name) ||
      paths.some((path) => path === name || path.startsWith(`${name}.`)),
  )
}

/** The cursor only informs. A time that is not valid is quarantined with the record, and a valid one is kept. */
function withoutHiddenFields({ cursor, ...change }: Upsert, hidden: readonly string[]): Upsert {
  const { upstreamUpdatedAt: time } = change
  const hidesTime = time !== undefined && hidden.includes(time) && canonicalizeInstant(time) === null
  return {
    ...change,
    ...(cursor !== undefined && !hidden.includes(cursor) && { cursor }),
    ...(hidesTime && { upstreamUpdatedAt: '(hidden)' }),
  }
}

/** Detects fields whose values are in the keys of the rows, which would show what the rules hide. */
class KeyMatches {
  readonly #sync: string
  readonly #counts = new Map<string, { field: string; records: number; matches: number; hasText: boolean }>()

  constructor(sync: string) {
    this.#sync = sync
  }

  add(database: string, key: string, hidden: ReadonlyMap<string, readonly JsonValue[]>): void {
    const parts = splitKey(key)
    for (const [field, values] of hidden) {
      const id = JSON.stringify([database, field])
      const count = this.#counts.get(id) ?? { field, records: 0, matches: 0, hasText: false }
      this.#counts.set(id, count)
      count.records++
      const found = values.find(
        (value) =>
          (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') &&
          value !== '' &&
          (String(value) === key || (String(value).length >= PART_LENGTH_MIN && parts.has(String(value)))),
      )
      if (found === undefined) continue
      count.matches++
      if (typeof found === 'string') count.hasText = true
    }
  }

  /** Numbers of different fields are often equal, so one of them must be in every key of at least two. */
  assertNone(): void {
    for (const { field, records, matches, hasText } of this.#counts.values())
      if (hasText || (matches === records && matches > 1)) throw createKeyError(this.#sync, field)
  }
}

/** Shorter parts of a composite key are equal to other values by chance. */
const PART_LENGTH_MIN = 4

function splitKey(key: string): ReadonlySet<string> {
  return new Set(key.split(/[\s,;:|/"[\]]+/))
}

function createKeyError(sync: string, field: string): SyncError {
  return new SyncError('COLUMNS_INVALID', `${sync}: the rules of \`columns\` hide a key: ${describeKeyField(field)}.`)
}
