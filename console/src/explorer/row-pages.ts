import { useEffect, useState, useSyncExternalStore } from 'react'
import type { RowDocument, RowsDocument } from '../../../src/server/console/documents.ts'
import { get, path } from '../api.ts'
import { effectiveOrder, toApiQuery, type View } from './view-state.ts'

const PAGE_ROWS = 100
/** Pages whose rows stay in memory. Others are read again when they are shown again. */
const PAGES_KEPT = 30

interface LoadedPage {
  readonly after: string | null
  readonly start: number
  readonly count: number
  /** Null if they were dropped from memory. */
  readonly rows: readonly RowDocument[] | null
}

export interface PagesState {
  readonly pages: readonly LoadedPage[]
  readonly count: number
  readonly scanned: number
  /** Where the last page ended; null at the end of the rows. */
  readonly next: string | null
  readonly scan: RowsDocument['scan']
  readonly isLoading: boolean
  /** The last response ended because it had looked at enough rows. */
  readonly isPaused: boolean
  readonly error: Error | null
}

const EMPTY: PagesState = {
  pages: [],
  count: 0,
  scanned: 0,
  next: null,
  scan: null,
  isLoading: true,
  isPaused: false,
  error: null,
}

/** The rows of a view, read page by page as they are shown. */
export class RowPages {
  #state = EMPTY
  readonly #url: (after: string | null) => string
  readonly #isSearch: boolean
  readonly #listeners = new Set<() => void>()
  #abort = new AbortController()
  readonly #refilling = new Set<number>()

  constructor(database: string, view: View) {
    const query = toApiQuery(view)
    this.#isSearch = view.search !== ''
    this.#url = (after) =>
      `${path`/console/api/databases/${database}/rows`}?${new URLSearchParams([...query, ['limit', String(PAGE_ROWS)], ...(after === null ? [] : [['after', after]])])}`
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly read = (): PagesState => this.#state

  /** Reads the first page, until it is closed. */
  open(): () => void {
    this.#abort = new AbortController()
    if (this.#state.pages.length === 0) void this.load()
    return () => this.#abort.abort()
  }

  /** Reads the next page. */
  async load(): Promise<void> {
    const { pages, next } = this.#state
    const after = pages.length === 0 ? null : next
    const { signal } = this.#abort
    this.#set({ isLoading: true, error: null })
    try {
      const page = await get<RowsDocument>(this.#url(after), signal)
      const { count, scanned } = this.#state
      const added = { after, start: count, count: page.data.length, rows: page.data }
      this.#set({
        pages: dropFarPages([...pages, added], pages.length),
        count: count + added.count,
        scanned: scanned + page.scanned,
        next: page.next,
        scan: page.scan,
        isLoading: false,
        isPaused: this.#isSearch && page.next !== null && page.data.length < PAGE_ROWS,
      })
    } catch (error) {
      if (!signal.aborted) this.#set({ isLoading: false, error: error as Error })
    }
  }

  /** Called with the rows that are visible: reads what is missing among them, or follows. */
  show(from: number, to: number): void {
    const { pages, count, next, isLoading, isPaused, error } = this.#state
    for (const [at, page] of pages.entries())
      if (page.rows === null && page.start < to && page.start + page.count > from) void this.#refill(at)
    if (to > count - PAGE_ROWS / 2 && next !== null && !isLoading && !isPaused && error === null) void this.load()
  }

  async #refill(at: number): Promise<void> {
    const page = this.#state.pages[at]
    if (page === undefined || this.#refilling.has(at)) return
    this.#refilling.add(at)
    try {
      const { data } = await get<RowsDocument>(this.#url(page.after), this.#abort.signal)
      const pages = this.#state.pages.with(at, { ...page, rows: data.slice(0, page.count) })
      this.#set({ pages: dropFarPages(pages, at) })
    } catch (error) {
      if (!this.#abort.signal.aborted) this.#set({ error: error as Error })
    } finally {
      this.#refilling.delete(at)
    }
  }

  #set(change: Partial<PagesState>): void {
    this.#state = { ...this.#state, ...change }
    for (const listener of this.#listeners) listener()
  }
}

function dropFarPages(pages: readonly LoadedPage[], shown: number): LoadedPage[] {
  return pages.map((page, at) => (Math.abs(at - shown) > PAGES_KEPT / 2 ? { ...page, rows: null } : page))
}

export function rowAt({ pages }: PagesState, index: number): RowDocument | null {
  let [low, high] = [0, pages.length - 1]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((pages[middle]?.start ?? 0) <= index) low = middle
    else high = middle - 1
  }
  const page = pages[low]
  return page?.rows?.[index - page.start] ?? null
}

/** The pages of a view; new ones when the view or `version` changes. */
export function useRowPages(database: string, view: View, version: number): { pages: RowPages; state: PagesState } {
  const { search, filters, asOf } = view
  const key = JSON.stringify([database, search, effectiveOrder(view), filters, asOf, version])
  const [held, setHeld] = useState(() => ({ key, pages: new RowPages(database, view) }))
  const current = held.key === key ? held : { key, pages: new RowPages(database, view) }
  if (current !== held) setHeld(current)
  useEffect(() => current.pages.open(), [current.pages])
  return { pages: current.pages, state: useSyncExternalStore(current.pages.subscribe, current.pages.read) }
}
