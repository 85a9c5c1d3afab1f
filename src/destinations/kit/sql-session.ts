import {
  SyncError,
  type DestinationBatch,
  type DestinationPosition,
  type DestinationSchema,
  type DestinationSession,
  type TokenStep,
} from '../../contract/index.ts'
import type { TableColumn } from '../../stores/kit/tables/column.ts'
import { isNextStep } from './is-next-step.ts'
import { SqlBatch } from './sql-batch.ts'
import { SqlStates, STATE_TABLE, type TableState, type TableStates } from './sql-states.ts'
import { namedColumns, type SqlTables } from './sql-tables.ts'
import { childTableNameOf, tableNameOf, toTargetName, type Target } from './table-names.ts'

/**
 * A session of any SQL database: one table per database, and a second one beside it during a load.
 *
 *   transactional DDL   begin ─ lock ─ check the token ─ create, add columns ─ rows, token ─ swap ─ commit
 *   immediate DDL       lock ─ settle ─ check the token ─ note ─ create, add columns ─ begin ─ rows, token, note ─ commit
 *                       ─ swap ─ unlock
 *
 * With immediate DDL, a crash leaves a note (`pending`) in the state. The next session settles it: it drops the table that
 * was being created, adds the columns, renames the loaded table or drops what was being removed.
 */
export class SqlSession implements DestinationSession {
  readonly #tables: SqlTables
  readonly #states: SqlStates
  readonly #tenant: string

  private constructor(tables: SqlTables, tenant: string) {
    this.#tables = tables
    this.#states = new SqlStates(tables)
    this.#tenant = tenant
  }

  /** Takes over the connection of `tables`. */
  static async open(tables: SqlTables, tenant: string): Promise<SqlSession> {
    const session = new SqlSession(tables, tenant)
    try {
      if (!(await session.#states.exists()))
        // Two processes that create it at once would otherwise both find it missing.
        await session.#withLock(STATE_TABLE, async () => {
          await tables.createSchema()
          await session.#states.create()
        })
    } catch (error) {
      await tables.close()
      throw error
    }
    return session
  }

  async position(database: string): Promise<DestinationPosition> {
    return toPosition(await this.#readStates(database))
  }

  async prepare({ database, mode, children = [] }: DestinationSchema): Promise<void> {
    const name = this.#nameOf(database)
    const { live, loading } = await this.#readStates(database)
    const ours = new Set([...physicalNames(name, 'live', live), ...physicalNames(name, 'loading', loading)])
    for (const target of ['live', 'loading'] as const)
      for (const table of physicalNames(name, target, { children: new Map(children.map((member) => [member, []])) }))
        if (!ours.has(table) && (await this.#tables.exists(table)))
          throw new SyncError(
            'DESTINATION_FOREIGN',
            `The ${this.#tables.scope} already has a table ${table} that does not belong to Tidemark. Nothing was changed.`,
          )
    if (live !== null && live.mode !== mode)
      throw new SyncError(
        'DESTINATION_INVALID',
        `The table ${name} was written in mode ${live.mode}, and not ${mode}. Use another ${this.#tables.scope.split(' ')[0]}, or remove the table with \`tidemark destinations remove --drop\`.`,
      )
  }

  async apply(batch: DestinationBatch, step: TokenStep): Promise<'applied' | 'refused'> {
    const { database, mode, children = [] } = batch.schema
    return this.#locked(database, async (stored) => {
      if (!isNextStep(toPosition(stored), batch, step)) return 'refused'
      const { target, isFirst, isLast } = batch
      const name = this.#nameOf(database)
      const rows = new SqlBatch(this.#tables, name, batch, step)
      const before = isFirst ? null : stored[target]
      if (before !== null) checkChildren(name, before, children)
      if (isFirst) {
        const all = new Map([...children, ...(stored[target]?.children.keys() ?? [])].map((member) => [member, []]))
        await this.#note(database, target, { token: step.next, mode, columns: [], children: all, pending: 'create' })
        await this.#tables.drop(physicalNames(name, target, { children: all }))
        await rows.create()
      }
      const layout = await rows.layout(before)
      if (before !== null && layout !== before)
        await this.#note(database, target, { ...before, ...layout, pending: 'columns' })
      await rows.addColumns(layout, before)
      const { columns, children: grown } = layout
      const state: TableState = { token: step.next, mode, columns, children: grown, pending: isLast ? 'swap' : null }
      await this.#commit(async () => {
        await rows.writeRows(layout)
        await this.#states.write(name, this.#ownerOf(database), target, state)
      })
      if (isLast) await this.#swap(name, { live: stored.live, loading: state })
      return 'applied'
    })
  }

  async remove(database: string): Promise<void> {
    const name = this.#nameOf(database)
    await this.#locked(database, async ({ live, loading }) => {
      if (live !== null) await this.#note(database, 'live', { ...live, pending: 'drop' })
      if (loading !== null) await this.#note(database, 'loading', { ...loading, pending: 'drop' })
      if (live !== null) await this.#drop(name, 'live', live)
      if (loading !== null) await this.#drop(name, 'loading', loading)
    })
  }

  close(): Promise<void> {
    return this.#tables.close()
  }

  async #readStates(database: string): Promise<TableStates> {
    const stored = await this.#states.read(this.#nameOf(database), this.#ownerOf(database))
    return hasPending(stored) ? this.#locked(database, async (settled) => settled) : stored
  }

  /** Runs `body` while no other process writes to the tables of the database. */
  #locked<T>(database: string, body: (stored: TableStates) => Promise<T>): Promise<T> {
    const name = this.#nameOf(database)
    return this.#withLock(name, async () => {
      let stored = await this.#states.read(name, this.#ownerOf(database))
      if (hasPending(stored)) {
        await this.#settle(database, stored)
        stored = await this.#states.read(name, this.#ownerOf(database))
      }
      return body(stored)
    })
  }

  async #withLock<T>(name: string, body: () => Promise<T>): Promise<T> {
    const tables = this.#tables
    if (tables.ddl === 'transactional')
      return tables.transaction(async () => {
        await tables.lock(name)
        return body()
      })
    await tables.lock(name)
    try {
      return await body()
    } finally {
      await tables.unlock(name)
    }
  }

  /** With transactional DDL, the transaction has begun with the lock. */
  #commit(body: () => Promise<void>): Promise<void> {
    return this.#tables.ddl === 'transactional' ? body() : this.#tables.transaction(body)
  }

  /** With immediate DDL, the state says what follows before it happens. */
  async #note(database: string, target: Target, state: TableState): Promise<void> {
    if (this.#tables.ddl === 'transactional') return
    await this.#commit(() => this.#states.write(this.#nameOf(database), this.#ownerOf(database), target, state))
  }

  /** Repeats or undoes what a crash interrupted. */
  async #settle(database: string, stored: TableStates): Promise<void> {
    const name = this.#nameOf(database)
    for (const target of ['live', 'loading'] as const) {
      const state = stored[target]
      switch (state?.pending) {
        case 'create':
        case 'drop':
          await this.#drop(name, target, state)
          break
        case 'columns':
          await this.#addMissingColumns(toTargetName(name, target), state.columns)
          for (const [member, columns] of state.children)
            await this.#addMissingColumns(toTargetName(childTableNameOf(name, member), target), columns)
          await this.#note(database, target, { ...state, pending: null })
          break
        case 'swap':
          await this.#swap(name, { live: stored.live, loading: state })
          break
        default:
          state?.pending satisfies null | undefined
      }
    }
  }

  async #addMissingColumns(table: string, columns: readonly TableColumn[]): Promise<void> {
    const existing = new Set(await this.#tables.columnNames(table))
    const missing = namedColumns(columns).filter(({ name }) => !existing.has(name))
    if (missing.length > 0) await this.#tables.addColumns(table, missing)
  }

  async #swap(name: string, { live, loading }: { live: TableState | null; loading: TableState }): Promise<void> {
    const tables = physicalNames(name, 'live', loading)
    const loaded = physicalNames(name, 'loading', loading)
    await this.#tables.swap(
      tables.map((to, at) => ({ from: loaded[at] ?? to, to })),
      physicalNames(name, 'live', live).filter((table) => !tables.includes(table)),
    )
    await this.#commit(() => this.#states.swap(name))
  }

  async #drop(name: string, target: Target, state: TableState): Promise<void> {
    await this.#tables.drop(physicalNames(name, target, state))
    await this.#commit(() => this.#states.remove(name, target))
  }

  #nameOf(database: string): string {
    return tableNameOf(this.#tenant, database)
  }

  #ownerOf(database: string): { tenant: string; database: string } {
    return { tenant: this.#tenant, database }
  }
}

function toPosition({ live, loading }: TableStates): DestinationPosition {
  return { live: live?.token ?? null, loading: loading?.token ?? null }
}

function hasPending({ live, loading }: TableStates): boolean {
  return (live?.pending ?? loading?.pending ?? null) !== null
}

/** The table of a target and its child tables; empty if the target does not exist. */
function physicalNames(name: string, target: Target, state: Pick<TableState, 'children'> | null): string[] {
  if (state === null) return []
  return [name, ...[...state.children.keys()].map((member) => childTableNameOf(name, member))].map((table) =>
    toTargetName(table, target),
  )
}

/** Rows that were written before have their children elsewhere. */
function checkChildren(name: string, stored: TableState, members: readonly string[]): void {
  if (stored.children.size === members.length && members.every((member) => stored.children.has(member))) return
  const list = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '))
  throw new SyncError(
    'DESTINATION_INVALID',
    `The table ${name} was loaded with other child tables (${list([...stored.children.keys()])}, and not ${list(members)}). Run \`tidemark destinations resync\` to load it again.`,
  )
}
