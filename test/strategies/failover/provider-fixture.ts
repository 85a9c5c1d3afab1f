import { SyncError, type JsonObject, type SyncContext } from '../../../src/contract/index.ts'
import {
  pagedProvider,
  type CursorState,
  type CursorType,
  type FetchRequest,
  type ProviderOperation,
  type PagedProvider,
  type PaginationCursor,
  type ComparableCursor,
  type Provider,
  type ProviderPage,
} from '../../../src/strategies/index.ts'
import { NO_PARTITIONS } from '../../../src/values/partition-overlay.ts'

export interface Tx extends JsonObject {
  id: string
  block: number
}

/** A transaction with its cursor in three forms; an hour per block. */
export function tx(block: number, id = `t${block}`): Tx {
  return { id, block }
}

export function txs(from: number, to: number): Tx[] {
  return Array.from({ length: to - from + 1 }, (_, at) => tx(from + at))
}

export const HOUR_MS = 3_600_000
export const block = (value: number): PaginationCursor => ({ type: 'blockNumber', value })
export const time = (value: number): PaginationCursor => ({ type: 'timestamp', value })
export const tokenOf = (providerName: string, value: string): PaginationCursor => ({
  type: 'pageToken',
  value,
  providerName,
})

export const OPERATION: ProviderOperation<Tx> = {
  id: ({ id }) => id,
  cursors: (item) => [
    { type: 'blockNumber', value: item.block },
    { type: 'timestamp', value: item.block * HOUR_MS },
    { type: 'txHash', value: item.id },
  ],
  toChange: (item) => ({ type: 'upsert', key: item.id, record: item }),
  check: (item) => (typeof item.block === 'number' ? null : 'has no block'),
}

type Answer = ProviderPage<Tx> | Error | ((request: FetchRequest, context: SyncContext) => Promise<ProviderPage<Tx>>)

export interface ScriptedProvider extends Provider<Tx> {
  readonly asked: FetchRequest[]
}

/** A provider that answers page by page as scripted, and records the requests. */
export function createScriptedProvider(
  name: string,
  answers: readonly Answer[],
  options: Partial<PagedProvider<Tx>> = {},
): ScriptedProvider {
  const asked: FetchRequest[] = []
  const provider = pagedProvider<Tx>({
    name,
    supports: ['blockNumber', 'timestamp'],
    prefers: 'blockNumber',
    fetchPage: async (request, context) => {
      const answer = answers[asked.push(request) - 1]
      if (answer === undefined) throw new Error(`${name} was asked ${asked.length} times`)
      if (answer instanceof Error) throw answer
      return typeof answer === 'function' ? answer(request, context) : answer
    },
    ...options,
  })
  return { ...provider, asked }
}

/** A provider of a list of transactions: whole, in pages, from a block or a token on. */
export function createListProvider(
  name: string,
  truth: () => readonly Tx[],
  options: {
    supports?: CursorType[]
    size?: number
    before?: (request: FetchRequest) => void
    through?: boolean
    replay?: number
  } = {},
): ScriptedProvider {
  const { supports = ['blockNumber'], size = 3, before, through = false, replay = 2 } = options
  const asked: FetchRequest[] = []
  const provider = pagedProvider<Tx>({
    name,
    supports,
    prefers: supports.find((type) => type !== 'pageToken') ?? 'pageToken',
    replay: { blocks: replay, ms: replay * HOUR_MS },
    fetchPage: async (request) => {
      asked.push(request)
      before?.(request)
      const { cursor } = request
      const all = truth()
      const from =
        cursor === undefined
          ? 0
          : cursor.type === 'timestamp'
            ? cursor.value / HOUR_MS
            : cursor.type === 'blockNumber'
              ? cursor.value
              : null
      const rest =
        from === null
          ? all.slice(Number(String(cursor!.value).split('/')[1]))
          : all.filter((item) => item.block >= from)
      if (supports.includes('pageToken')) {
        const at = from === null ? Number(String(cursor!.value).split('/')[1]) : all.length - rest.length
        const end = at + size >= all.length
        return { items: rest.slice(0, size), next: end ? null : `${name}/${at + size}`, end }
      }
      // Whole blocks, or the rest of one would be passed over.
      const last = rest[size - 1]?.block
      const items = last === undefined ? rest : rest.filter((item) => item.block <= last)
      const end = items.length === rest.length
      const place = (value: number): ComparableCursor =>
        supports.includes('blockNumber')
          ? { type: 'blockNumber', value }
          : { type: 'timestamp', value: value * HOUR_MS }
      return {
        items,
        end,
        ...(last !== undefined && !end
          ? { through: place(last + 1) }
          : through
            ? { through: place((all.at(-1)?.block ?? 0) + 1) }
            : {}),
      }
    },
  })
  return { ...provider, asked }
}

export function createUnavailableError(what = 'is down'): SyncError {
  return new SyncError('SOURCE_UNAVAILABLE', what)
}

/** Enough of a context for what asks only for the time. */
export function contextOf(
  options: { now?: () => number; signal?: AbortSignal; cycle?: number; pacer?: SyncContext['pacer'] } = {},
): SyncContext {
  const {
    now = () => 1_000_000,
    signal = new AbortController().signal,
    cycle = 1,
    pacer = { wait: async () => {} },
  } = options
  return {
    fetch: () => Promise.reject(new Error('no network')),
    signal,
    pacer,
    clock: {
      now,
      sleep: (_, stop) =>
        new Promise((_resolve, reject) =>
          stop?.addEventListener('abort', () => reject(stop.reason as Error), { once: true }),
        ),
    },
    random: { next: () => 0.5 },
    log: { debug() {}, info() {}, warn() {}, error() {} },
    secrets: { get: (name) => name },
    partitions: NO_PARTITIONS,
    cycle: { id: cycle, mode: 'incremental', startedAt: now(), page: 1 },
  }
}

export function stateAt(
  primary: PaginationCursor,
  more: Partial<CursorState> & { provider?: string } = {},
): CursorState {
  const { provider = 'north', metadata, ...rest } = more
  return {
    primary,
    lastTransactionId: 't9',
    totalFetched: 10,
    metadata: { providerName: provider, updatedAt: 1, ...metadata },
    ...rest,
  }
}
