import { isComparableCursor, type CursorMetadata, type CursorState, type PaginationCursor, type ComparableCursor, type ComparableCursorType } from './cursors.ts'
import type { PagedProvider } from './paged-provider.ts'
import type { ProviderOperation, ProviderPage, StreamRequest } from './provider.ts'

export interface CursorBuildInput<Item = any> {
  readonly provider: Pick<PagedProvider<Item>, 'name' | 'prefers' | 'supports'>
  readonly operation: ProviderOperation<Item>
  readonly page: ProviderPage<Item>
  readonly request: Pick<StreamRequest<Item>, 'cursor' | 'cursorState' | 'isSameProvider'>
  readonly isComplete: boolean
  readonly now: number
}

/** Of a stream that never had anything. */
export const START_CURSOR: PaginationCursor = { type: 'blockNumber', value: 0 }

/** Where a page leads. */
export function buildNextCursor<Item>(build: CursorBuildInput<Item>): CursorState {
  const { provider, operation, page, request: asked, isComplete, now: at } = build
  const { cursorState: from } = asked
  const last = page.items.at(-1)
  const token = page.next ?? null
  const isMute = last === undefined && token === null && page.custom === undefined && page.metadata === undefined
  if (isMute && !isBeyondCursor(page.through, asked)) {
    const still = keepCursor(provider, asked, at)
    return { ...still, metadata: { ...still.metadata!, isComplete } }
  }

  const told = listCursors(page, last === undefined ? [] : operation.cursors(last)).map((cursor) => clampToRequested(asked.cursor, cursor))
  const primary: PaginationCursor = token !== null
    ? { type: 'pageToken', value: token, providerName: provider.name }
    : (page.through === undefined ? pickPreferredCursor(provider, told) : told[0]) ?? asked.cursor ?? from?.primary ?? START_CURSOR
  // A place that only says how far the page reaches stands beside what the last item before it told in other forms.
  const earlier = told.length > 1 ? [] : (from?.alternatives ?? []).filter(({ type }) => told[0]?.type !== type)
  const alternatives = [...told, ...earlier]
  return {
    primary,
    ...(alternatives.length > 0 && { alternatives }),
    lastTransactionId: last === undefined ? (from?.lastTransactionId ?? '') : operation.id(last),
    totalFetched: from?.totalFetched ?? 0,
    metadata: buildMetadata(build, [primary, ...alternatives]),
  }
}

/**
 * An empty page proves nothing of where the stream stands: the position stays as it is, whoever wrote it. Without one, it is that of
 * a stream that never had anything.
 */
export function keepCursor({ name }: CursorBuildInput['provider'], { cursorState: from, cursor }: CursorBuildInput['request'], at: number): CursorState {
  if (from === undefined) return { primary: cursor ?? START_CURSOR, lastTransactionId: '', totalFetched: 0, metadata: { providerName: name, updatedAt: at, isComplete: false } }
  return { ...from, metadata: { ...from.metadata, providerName: from.metadata?.providerName ?? name, updatedAt: at, isComplete: false } }
}

/** How far the page is complete, where it says so; else as far as its last item. */
function listCursors({ through }: ProviderPage<unknown>, extracted: readonly PaginationCursor[]): PaginationCursor[] {
  if (through === undefined) return [...extracted]
  const same = extracted.find((cursor): cursor is ComparableCursor => cursor.type === through.type)
  // Items beyond the place up to which all is told would lead others past what is missing before them.
  return same !== undefined && same.value <= through.value ? [through, ...extracted] : [through]
}

/** A page that was asked for from a place on tells of nothing before it, whatever else it holds. */
function clampToRequested(asked: PaginationCursor | undefined, told: PaginationCursor): PaginationCursor {
  return asked?.type === told.type && isComparableCursor(asked) && isComparableCursor(told) && told.value < asked.value ? asked : told
}

function pickPreferredCursor({ prefers, supports }: CursorBuildInput['provider'], told: readonly PaginationCursor[]): PaginationCursor | undefined {
  const usable = told.filter(({ type }) => supports.includes(type))
  return usable.find(({ type }) => type === prefers) ?? usable.find(({ type }) => type === 'blockNumber') ?? usable[0]
}

function isBeyondCursor(through: ComparableCursor | undefined, { cursor, cursorState: from }: CursorBuildInput['request']): boolean {
  if (through === undefined) return false
  const known = [cursor, from?.primary, ...(from?.alternatives ?? [])].find((place) => place?.type === through.type)
  return through.value > ((known?.value as number | undefined) ?? 0)
}

function buildMetadata({ page, operation, request: { cursorState: from }, provider, isComplete, now: at }: CursorBuildInput, cursors: readonly PaginationCursor[]): CursorMetadata {
  const { custom: _, ...kept } = from?.metadata ?? {}
  const reached: Partial<Record<ComparableCursorType, number>> = { ...from?.metadata?.reached }
  for (const cursor of cursors.filter(isComparableCursor)) reached[cursor.type] = Math.max(cursor.value, reached[cursor.type] ?? 0)
  const last = page.items.at(-1)
  const lastAt = last !== undefined && { lastAt: Object.fromEntries(operation.cursors(last).filter(isComparableCursor).map(({ type, value }) => [type, value])) }
  return { ...kept, ...page.metadata, ...(page.custom !== undefined && { custom: page.custom }), ...lastAt, reached, providerName: provider.name, updatedAt: at, isComplete }
}
