import type { SyncContext } from '../../../src/contract/index.ts'
import { createHttpClient } from '../../../src/sources/kit/http-client.ts'
import { SkippingClock } from '../../../src/testing/skipping-clock.ts'
import type { SourceHarness } from '../../../src/testing/source-cases/harness.ts'

interface Entry {
  readonly id: string
  readonly text: string
  readonly at: number
  readonly gone: boolean
  /** The time at which it becomes visible in the change log. */
  readonly shownAt: number
}

const PAGE = 6
const LAG_MS = 1_000

/** Mistakes that a source can make when it reads the ledger. */
export interface Mistakes {
  /** The delta continues after the last time without the id. */
  readonly timeAlone?: boolean
  /** The delta reads up to the current time, without a lag for late changes. */
  readonly noLag?: boolean
  /** A complete delta continues from the local clock. */
  readonly ownClock?: boolean
  /** The delta starts at its first run instead of the start of the listing. */
  readonly noAnchor?: boolean
  readonly deafToDeletes?: boolean
  readonly firstPageOnly?: boolean
  readonly byOffset?: boolean
  readonly failureIsEmpty?: boolean
  /** The listing ends with the first empty response. */
  readonly emptyIsEnd?: boolean
  /** The delta advances after an empty response. */
  readonly emptyMoves?: boolean
  readonly stamped?: boolean
  readonly remembers?: boolean
}

/** A small system with a listing and a change log with late entries, and a hand-written source for it. */
export function openLedger(mistakes: Mistakes = {}): SourceHarness {
  const clock = new SkippingClock()
  const entries = new Map<string, Entry>()
  let writes = 0
  const put = (ids: readonly string[], gone = false): void => {
    const at = clock.now()
    for (const id of ids)
      entries.set(id, { id, text: `write ${++writes}`, at, gone, shownAt: writes % 2 === 0 ? at : at + LAG_MS / 2 })
  }
  const handle = (url: URL): unknown => {
    const asked = (name: string): string | null => url.searchParams.get(name)
    const [after, offset, at, until] = [asked('after'), asked('offset'), Number(asked('at')), Number(asked('until'))]
    const all = [...entries.values()]
    if (url.pathname === '/list') {
      const live = all.filter(({ gone }) => !gone).toSorted((a, b) => (a.id < b.id ? -1 : 1))
      return (offset === null ? live.filter(({ id }) => id > (after ?? '')) : live.slice(Number(offset))).slice(0, PAGE)
    }
    return all
      .filter(
        (entry) =>
          entry.shownAt <= clock.now() &&
          entry.at <= until &&
          (entry.at > at || (after !== null && entry.at === at && entry.id > after)),
      )
      .toSorted((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
      .slice(0, PAGE)
  }
  return {
    source: sourceOf(mistakes),
    clock,
    fetch: async (input) => Response.json(handle(new URL(input))),
    create: (count) => {
      const ids = Array.from({ length: count }, (_, n) => `k${String(entries.size + n).padStart(6, '0')}`)
      put(ids)
      return ids
    },
    change: (keys) => put(keys),
    remove: (keys) => put(keys, true),
    rows: () =>
      Object.fromEntries([...entries.values()].filter(({ gone }) => !gone).map(({ id, text }) => [id, { id, text }])),
    settle: () => clock.skip(5 * LAG_MS),
  }
}

function sourceOf(mistakes: Mistakes): SourceHarness['source'] {
  const client = createHttpClient({ baseUrl: 'https://ledger.test' })
  const remembered = new Map<string, string>()
  const read = async (
    path: string,
    query: Record<string, string | number | undefined>,
    context: SyncContext,
  ): Promise<Entry[]> => {
    try {
      return (await client.get(path, query, context)).body as unknown as Entry[]
    } catch (error) {
      if (mistakes.failureIsEmpty) return []
      throw error
    }
  }
  const toChange = ({ id, text, gone }: Entry, { clock }: SyncContext) => {
    if (gone) return { type: 'delete', key: id } as const
    if (mistakes.remembers && !remembered.has(id)) remembered.set(id, text)
    return {
      type: 'upsert',
      key: id,
      record: { id, text: remembered.get(id) ?? text, ...(mistakes.stamped && { readAt: clock.now() }) },
    } as const
  }
  return {
    async backfill(state: { after: string; offset: number; isEnding?: boolean } | undefined, context) {
      const { after = '', offset = 0, isEnding = mistakes.emptyIsEnd === true } = state ?? {}
      const entries = await read('/list', mistakes.byOffset ? { offset } : { after }, context)
      return {
        changes: entries.map((entry) => toChange(entry, context)),
        nextState: {
          after: entries.at(-1)?.id ?? after,
          offset: offset + entries.length,
          isEnding: mistakes.emptyIsEnd === true || entries.length === 0,
        },
        // A page that is not full is the last one; an empty page is requested twice.
        hasMore: (entries.length === PAGE || (entries.length === 0 && !isEnding)) && mistakes.firstPageOnly !== true,
      }
    },
    ...(mistakes.noAnchor !== true && {
      anchor: async ({ clock }: SyncContext) => ({ at: clock.now() - LAG_MS, id: '' }),
    }),
    async delta(state: { at: number; id: string } | undefined, context) {
      const now = context.clock.now()
      const from = state ?? { at: now - LAG_MS, id: '' }
      const until = mistakes.noLag ? now : now - LAG_MS
      const entries = await read(
        '/changes',
        { at: from.at, after: mistakes.timeAlone ? undefined : from.id, until },
        context,
      )
      const { at, id } = entries.at(-1) ?? (mistakes.emptyMoves ? { at: until, id: '' } : from)
      const hasMore = entries.length === PAGE
      const told = entries.filter(({ gone }) => !(gone && mistakes.deafToDeletes))
      return {
        changes: told.map((entry) => toChange(entry, context)),
        nextState: !hasMore && mistakes.ownClock ? { at: now, id: '' } : { at, id },
        hasMore,
      }
    },
  }
}
