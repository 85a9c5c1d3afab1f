import {
  SyncError,
  type DestinationBatch,
  type DestinationPosition,
  type DestinationSchema,
  type DestinationSession,
  type TokenStep,
} from '../../contract/index.ts'
import { isNextStep } from '../kit/is-next-step.ts'
import { buildChange, type LakeTable } from './build-change.ts'
import { compact, planCompaction } from './compaction.ts'
import type { TableState } from './table-state.ts'

/** Commits that another process won are repeated on its version: it may have been a compaction. */
const ATTEMPTS_MAX = 5
/** A version divisible by this removes unused files. */
const SWEEP_INTERVAL = 32

/** Tables of one tenant. Files that were read stay in the caches of their table until the session is closed. */
export class LakeSession implements DestinationSession {
  readonly #openTable: (database: string) => LakeTable
  readonly #tables = new Map<string, LakeTable>()

  constructor(openTable: (database: string) => LakeTable) {
    this.#openTable = openTable
  }

  async position(database: string): Promise<DestinationPosition> {
    return positionOf(await this.#tableOf(database).format.load())
  }

  async prepare({ database, mode }: DestinationSchema): Promise<void> {
    const table = this.#tableOf(database)
    const { storage, folder } = table.context
    const state = await table.format.load()
    if (state === null) {
      const foreign = (await storage.list(folder)).find(({ path }) => !OWN_FILE.test(path.slice(folder.length + 1)))
      if (foreign !== undefined)
        throw new SyncError(
          'DESTINATION_FOREIGN',
          `${storage.uri}/${folder} has files that do not belong to Tidemark, such as ${foreign.path}. Nothing was changed.`,
        )
    }
    const live = state?.live ?? null
    if (live !== null && live.mode !== mode)
      throw new SyncError(
        'DESTINATION_INVALID',
        `The table ${folder} was written in mode ${live.mode}, and not ${mode}. Use another folder, or remove the table with \`tidemark destinations remove --drop\`.`,
      )
  }

  async apply(batch: DestinationBatch, step: TokenStep): Promise<'applied' | 'refused'> {
    const table = this.#tableOf(batch.schema.database)
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const state = await table.format.load()
      // The version is created only if nothing was committed since it was read here.
      if (!isNextStep(positionOf(state), batch, step)) return 'refused'
      if (await this.#compact(table, state, batch, step)) continue
      const change = await buildChange(table, state, batch, step)
      if ((await table.format.commit(state, change)) === 'lost') continue
      if (((state?.version ?? 0) + 1) % SWEEP_INTERVAL === 0) await table.format.sweep()
      return 'applied'
    }
    throw new SyncError(
      'DESTINATION_UNAVAILABLE',
      `Other processes commit to ${table.context.storage.uri}/${table.context.folder} all the time.`,
    )
  }

  async remove(database: string): Promise<void> {
    await this.#tableOf(database).format.remove()
    this.#tables.delete(database)
  }

  async close(): Promise<void> {
    this.#tables.clear()
  }

  #compacted: TokenStep | null = null

  /** Before a batch, at most once: an error leaves the batch unapplied. True if the state must be read again. */
  async #compact(
    table: LakeTable,
    state: TableState | null,
    { target, changes, isFirst, isLast }: DestinationBatch,
    step: TokenStep,
  ): Promise<boolean> {
    const branch = state?.[target] ?? null
    const isLoading = isFirst || isLast || step.previous === null || step.previous.after !== null
    if (state === null || branch === null || isLoading || changes.length === 0 || this.#compacted === step) return false
    this.#compacted = step
    const files = await branch.files()
    const plan = planCompaction(files)
    if (plan === null) return false
    await table.format.commit(state, await compact(table, state, target, branch, files, plan))
    return true
  }

  #tableOf(database: string): LakeTable {
    let table = this.#tables.get(database)
    if (table === undefined) this.#tables.set(database, (table = this.#openTable(database)))
    return table
  }
}

/** Names that a first commit leaves if it is interrupted. */
const OWN_FILE = /^(?:metadata\/(?:snap-|manifest-|\.)|data\/|_tidemark\/\.)/

function positionOf(state: TableState | null): DestinationPosition {
  return { live: state?.live?.token ?? null, loading: state?.loading?.token ?? null }
}
