import { isPosition, type CursorMetadata, type CursorState, type PaginationCursor, type Position, type PositionType } from './cursors.ts'
import type { PagedProvider } from './pages.ts'
import type { Operation, ProviderPage, StreamRequest } from './provider.ts'

export interface CursorBuild<Item = any> {
  readonly provider: Pick<PagedProvider<Item>, 'name' | 'prefers' | 'supports'>
  readonly operation: Operation<Item>
  readonly page: ProviderPage<Item>
  readonly asked: Pick<StreamRequest<Item>, 'cursor' | 'from' | 'isOwn'>
  readonly isComplete: boolean
  readonly at: number
}

/** Of a stream that never had anything. */
export const START: PaginationCursor = { type: 'blockNumber', value: 0 }

/** Where a page leads. */
export function nextCursor<Item>(build: CursorBuild<Item>): CursorState {
  const { provider, operation, page, asked, isComplete, at } = build
  const { from } = asked
  const last = page.items.at(-1)
  const token = page.next ?? null
  const isMute = last === undefined && token === null && page.custom === undefined && page.metadata === undefined
  if (isMute && !isFurther(page.through, asked)) {
    const still = stay(provider, asked, at)
    return { ...still, metadata: { ...still.metadata!, isComplete } }
  }

  const told = placesOf(page, last === undefined ? [] : operation.cursors(last)).map((cursor) => notBefore(asked.cursor, cursor))
  const primary: PaginationCursor = token !== null
    ? { type: 'pageToken', value: token, providerName: provider.name }
    : (page.through === undefined ? preferred(provider, told) : told[0]) ?? asked.cursor ?? from?.primary ?? START
  // A place that only says how far the page reaches stands beside what the last item before it told in other forms.
  const earlier = told.length > 1 ? [] : (from?.alternatives ?? []).filter(({ type }) => told[0]?.type !== type)
  const alternatives = [...told, ...earlier]
  return {
    primary,
    ...(alternatives.length > 0 && { alternatives }),
    lastTransactionId: last === undefined ? (from?.lastTransactionId ?? '') : operation.id(last),
    totalFetched: from?.totalFetched ?? 0,
    metadata: metadataOf(build, [primary, ...alternatives]),
  }
}

/**
 * An empty page proves nothing of where the stream stands: the position stays as it is, whoever wrote it. Without one, it is that of
 * a stream that never had anything.
 */
export function stay({ name }: CursorBuild['provider'], { from, cursor }: CursorBuild['asked'], at: number): CursorState {
  if (from === undefined) return { primary: cursor ?? START, lastTransactionId: '', totalFetched: 0, metadata: { providerName: name, updatedAt: at, isComplete: false } }
  return { ...from, metadata: { ...from.metadata, providerName: from.metadata?.providerName ?? name, updatedAt: at, isComplete: false } }
}

/** How far the page is complete, where it says so; else as far as its last item. */
function placesOf({ through }: ProviderPage<unknown>, extracted: readonly PaginationCursor[]): PaginationCursor[] {
  if (through === undefined) return [...extracted]
  const same = extracted.find((cursor): cursor is Position => cursor.type === through.type)
  // Items beyond the place up to which all is told would lead others past what is missing before them.
  return same !== undefined && same.value <= through.value ? [through, ...extracted] : [through]
}

/** A page that was asked for from a place on tells of nothing before it, whatever else it holds. */
function notBefore(asked: PaginationCursor | undefined, told: PaginationCursor): PaginationCursor {
  return asked?.type === told.type && isPosition(asked) && isPosition(told) && told.value < asked.value ? asked : told
}

function preferred({ prefers, supports }: CursorBuild['provider'], told: readonly PaginationCursor[]): PaginationCursor | undefined {
  const usable = told.filter(({ type }) => supports.includes(type))
  return usable.find(({ type }) => type === prefers) ?? usable.find(({ type }) => type === 'blockNumber') ?? usable[0]
}

function isFurther(through: Position | undefined, { cursor, from }: CursorBuild['asked']): boolean {
  if (through === undefined) return false
  const known = [cursor, from?.primary, ...(from?.alternatives ?? [])].find((place) => place?.type === through.type)
  return through.value > ((known?.value as number | undefined) ?? 0)
}

function metadataOf({ page, operation, asked: { from }, provider, isComplete, at }: CursorBuild, cursors: readonly PaginationCursor[]): CursorMetadata {
  const { custom: _, ...kept } = from?.metadata ?? {}
  const reached: Partial<Record<PositionType, number>> = { ...from?.metadata?.reached }
  for (const cursor of cursors.filter(isPosition)) reached[cursor.type] = Math.max(cursor.value, reached[cursor.type] ?? 0)
  const last = page.items.at(-1)
  const lastAt = last !== undefined && { lastAt: Object.fromEntries(operation.cursors(last).filter(isPosition).map(({ type, value }) => [type, value])) }
  return { ...kept, ...page.metadata, ...(page.custom !== undefined && { custom: page.custom }), ...lastAt, reached, providerName: provider.name, updatedAt: at, isComplete }
}
