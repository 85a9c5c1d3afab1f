import {
  isComparableCursor,
  requireMetadata,
  type CursorMetadata,
  type CursorState,
  type PaginationCursor,
  type ComparableCursor,
  type ComparableCursorType,
} from './cursors.ts'
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

/** The cursor of a stream that has never returned an item. */
export const START_CURSOR: PaginationCursor = { type: 'blockNumber', value: 0 }

/** Computes the cursor that follows a page. */
export function buildNextCursor<Item>(build: CursorBuildInput<Item>): CursorState {
  const { provider, operation, page, request, isComplete, now } = build
  const { cursorState: from } = request
  const last = page.items.at(-1)
  const token = page.next ?? null
  const isSilent = last === undefined && token === null && page.custom === undefined && page.metadata === undefined
  if (isSilent && !isBeyondCursor(page.through, request)) {
    const kept = keepCursor(provider, request, now)
    return { ...kept, metadata: { ...requireMetadata(kept), isComplete } }
  }

  const cursors = listCursors(page, last === undefined ? [] : operation.cursors(last)).map((cursor) =>
    clampToRequested(request.cursor, cursor),
  )
  const primary: PaginationCursor =
    token !== null
      ? { type: 'pageToken', value: token, providerName: provider.name }
      : ((page.through === undefined ? pickPreferredCursor(provider, cursors) : cursors[0]) ??
        request.cursor ??
        from?.primary ??
        START_CURSOR)
  // A cursor that only marks the page's extent is stored next to the forms that the last earlier item provided.
  const earlier = cursors.length > 1 ? [] : (from?.alternatives ?? []).filter(({ type }) => cursors[0]?.type !== type)
  const alternatives = [...cursors, ...earlier]
  return {
    primary,
    ...(alternatives.length > 0 && { alternatives }),
    lastTransactionId: last === undefined ? (from?.lastTransactionId ?? '') : operation.id(last),
    totalFetched: from?.totalFetched ?? 0,
    metadata: buildMetadata(build, [primary, ...alternatives]),
  }
}

/**
 * An empty page proves nothing about the stream, so the cursor stays, whichever provider wrote it. Without one, it is
 * the start cursor.
 */
export function keepCursor(
  { name }: CursorBuildInput['provider'],
  { cursorState: from, cursor }: CursorBuildInput['request'],
  now: number,
): CursorState {
  if (from === undefined)
    return {
      primary: cursor ?? START_CURSOR,
      lastTransactionId: '',
      totalFetched: 0,
      metadata: { providerName: name, updatedAt: now, isComplete: false },
    }
  return {
    ...from,
    metadata: {
      ...from.metadata,
      providerName: from.metadata?.providerName ?? name,
      updatedAt: now,
      isComplete: false,
    },
  }
}

/** The extent that the page declares complete; otherwise the cursors of its last item. */
function listCursors({ through }: ProviderPage<unknown>, extracted: readonly PaginationCursor[]): PaginationCursor[] {
  if (through === undefined) return [...extracted]
  const same = extracted.find((cursor): cursor is ComparableCursor => cursor.type === through.type)
  // Items beyond the declared extent would lead other providers past rows that are missing before them.
  return same !== undefined && same.value <= through.value ? [through, ...extracted] : [through]
}

/** A page requested from a cursor covers nothing before it, whatever items it contains. */
function clampToRequested(requested: PaginationCursor | undefined, cursor: PaginationCursor): PaginationCursor {
  return requested?.type === cursor.type &&
    isComparableCursor(requested) &&
    isComparableCursor(cursor) &&
    cursor.value < requested.value
    ? requested
    : cursor
}

function pickPreferredCursor(
  { prefers, supports }: CursorBuildInput['provider'],
  cursors: readonly PaginationCursor[],
): PaginationCursor | undefined {
  const usable = cursors.filter(({ type }) => supports.includes(type))
  return usable.find(({ type }) => type === prefers) ?? usable.find(({ type }) => type === 'blockNumber') ?? usable[0]
}

function isBeyondCursor(
  through: ComparableCursor | undefined,
  { cursor, cursorState: from }: CursorBuildInput['request'],
): boolean {
  if (through === undefined) return false
  const known = [cursor, from?.primary, ...(from?.alternatives ?? [])].find(
    (candidate) => candidate?.type === through.type,
  )
  return through.value > ((known?.value as number | undefined) ?? 0)
}

function buildMetadata(
  { page, operation, request: { cursorState: from }, provider, isComplete, now }: CursorBuildInput,
  cursors: readonly PaginationCursor[],
): CursorMetadata {
  const { custom: _, ...kept } = from?.metadata ?? {}
  const reached: Partial<Record<ComparableCursorType, number>> = { ...from?.metadata?.reached }
  for (const cursor of cursors.filter(isComparableCursor))
    reached[cursor.type] = Math.max(cursor.value, reached[cursor.type] ?? 0)
  const last = page.items.at(-1)
  const lastAt = last !== undefined && {
    lastAt: Object.fromEntries(
      operation
        .cursors(last)
        .filter(isComparableCursor)
        .map(({ type, value }) => [type, value]),
    ),
  }
  return {
    ...kept,
    ...page.metadata,
    ...(page.custom !== undefined && { custom: page.custom }),
    ...lastAt,
    reached,
    providerName: provider.name,
    updatedAt: now,
    isComplete,
  }
}
