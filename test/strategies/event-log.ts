import type { Clock } from '../../src/contract/index.ts'
import {
  eventFeed,
  type EventConversion,
  type EventFeedReader,
  type EventFeedState,
  type AnchoredExecute,
} from '../../src/strategies/index.ts'

export interface LogEvent {
  readonly id: string
  /** In seconds, as such logs have it. */
  readonly created: number
  readonly type: 'changed' | 'deleted'
  readonly object: { readonly id: string; readonly v: number }
}

interface Stored extends LogEvent {
  readonly visibleAt: number
}

/** Objects, and a log of what happened to them: newest first, in whole seconds, kept for thirty days, late to show up. */
export class EventLog {
  readonly #clock: Clock
  readonly #events: Stored[] = []
  readonly #objects = new Map<string, { id: string; v: number }>()
  calls = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now()
  }

  change(id: string, { lateMs = 0 }: { lateMs?: number } = {}): void {
    const object = { id, v: (this.#objects.get(id)?.v ?? 0) + 1 }
    this.#objects.set(id, object)
    this.#note('changed', object, lateMs)
  }

  remove(id: string, { lateMs = 0 }: { lateMs?: number } = {}): void {
    const object = this.#objects.get(id)!
    this.#objects.delete(id)
    this.#note('deleted', object, lateMs)
  }

  /** The objects as they are, in the order of their ids. */
  objects(): Array<{ id: string; v: number }> {
    return [...this.#objects.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
  }

  truth(): Record<string, unknown> {
    return Object.fromEntries(this.#objects)
  }

  newest(): LogEvent | undefined {
    return this.#visible().at(-1)
  }

  /** The newest events there are, newest first. */
  newestPage(limit: number): { data: LogEvent[]; has_more: boolean } {
    this.calls++
    const visible = this.#visible()
    return { data: visible.slice(-limit).reverse(), has_more: visible.length > limit }
  }

  /** The page next to the event named, on its newer side; its newest event first. */
  endingBefore(id: string, limit: number): { data: LogEvent[]; has_more: boolean } {
    this.calls++
    const visible = this.#visible()
    const at = visible.findIndex((event) => event.id === id)
    if (at === -1) throw new Error(`no such event: ${id}`)
    const newer = visible.slice(at + 1)
    return { data: newer.slice(0, limit).reverse(), has_more: newer.length > limit }
  }

  #note(type: LogEvent['type'], object: { id: string; v: number }, lateMs: number): void {
    this.#events.push({
      id: `evt_${this.#events.length + 1}`,
      created: Math.floor(this.#clock.now() / 1_000),
      type,
      object,
      visibleAt: this.#clock.now() + lateMs,
    })
  }

  #visible(): LogEvent[] {
    return this.#events.filter(
      ({ visibleAt, created }) =>
        visibleAt <= this.#clock.now() && created * 1_000 > this.#clock.now() - 30 * 86_400_000,
    )
  }
}

/** A connector of the log, as an author would write it. */
export function feedOf(
  log: EventLog,
  options: Partial<EventFeedReader<LogEvent> & Pick<EventConversion<LogEvent>, 'toChanges'>> & { limit?: number } = {},
): AnchoredExecute<EventFeedState> {
  const { limit = 100, ...rest } = options
  return eventFeed<LogEvent>({
    anchor: async () => log.newest(),
    read: async ({ after }) => {
      const { data, has_more } = after === '' ? log.newestPage(limit) : log.endingBefore(after, limit)
      return { events: data, hasMore: has_more }
    },
    time: ({ created }) => new Date(created * 1_000).toISOString(),
    id: ({ id }) => id,
    toChanges: ({ type, object }) => [
      type === 'deleted'
        ? { type: 'delete', key: object.id }
        : { type: 'upsert', key: object.id, record: { ...object } },
    ],
    lagMs: 10_000,
    order: 'newest-first',
    retentionMs: 30 * 86_400_000,
    ...rest,
  })
}
