import type {
  ColumnType,
  Destination,
  DestinationMode,
  DestinationSession,
  JsonObject,
} from '../../src/contract/index.ts'
import type { DestinationToken, TokenStep } from '../../src/contract/destination.ts'

/** Applies batches to one database of a destination, without a store. */
export class LakeWriter {
  readonly session: DestinationSession
  token: DestinationToken = { storeId: 's', epoch: 1, sequence: 0, committedAt: 0, after: '' }
  readonly #schema: { database: string; mode: DestinationMode; columns: Array<{ member: string; type: ColumnType }> }

  private constructor(session: DestinationSession, mode: DestinationMode, columns: Record<string, ColumnType>) {
    this.session = session
    this.#schema = {
      database: 'things',
      mode,
      columns: Object.entries(columns).map(([member, type]) => ({ member, type })),
    }
  }

  /** Loads these rows and makes them live. */
  static async load(
    destination: Destination,
    columns: Record<string, ColumnType>,
    rows: ReadonlyArray<readonly [string, JsonObject]> = [],
    mode: DestinationMode = 'mirror',
  ): Promise<LakeWriter> {
    const session = await destination.open({ tenant: 'default', signal: new AbortController().signal })
    const writer = new LakeWriter(session, mode, columns)
    await writer.#apply([], { previous: null, next: writer.token }, { isFirst: true })
    await writer.#apply(rows, writer.#step({ after: null }), {})
    await writer.#apply([], writer.#step({}), { isLast: true })
    return writer
  }

  async change(...changes: ReadonlyArray<readonly [string, JsonObject | null]>): Promise<void> {
    await this.#apply(changes, this.#step({}), { target: 'live' })
  }

  #step(change: Partial<DestinationToken>): TokenStep {
    return { previous: this.token, next: { ...this.token, sequence: this.token.sequence + 1_000, ...change } }
  }

  async #apply(
    changes: ReadonlyArray<readonly [string, JsonObject | null]>,
    step: TokenStep,
    {
      target = 'loading',
      isFirst = false,
      isLast = false,
    }: { target?: 'live' | 'loading'; isFirst?: boolean; isLast?: boolean },
  ): Promise<void> {
    const outcome = await this.session.apply(
      {
        schema: this.#schema,
        target,
        isFirst,
        isLast,
        changes: changes.map(([key, record], at) => ({
          key,
          action: record === null ? 'deleted' : 'updated',
          sequence: this.token.sequence + at + 1,
          committedAt: 1_700_000_000_000,
          record,
          text: record === null ? null : '{}',
        })),
      },
      step,
    )
    if (outcome !== 'applied') throw new Error(outcome)
    this.token = step.next
  }
}
