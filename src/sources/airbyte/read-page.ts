import type { JsonObject, JsonValue } from '../../contract/index.ts'
import { DatetimeCursor } from './cursor/datetime-cursor.ts'
import { isTrue } from './jinja/operators.ts'
import { toPython, type Names } from './jinja/interpolation.ts'
import { GONE_STATUSES, markIncomplete } from '../kit/incomplete-answers.ts'
import { components, isComponent, type Component } from './manifest/component.ts'
import { selectRecords } from './records/select.ts'
import { decodeBody } from './requests/decode.ts'
import { addPageOptions, initialToken, nextToken, paginatorOf, tokenPath } from './requests/paginate.ts'
import { injectOption, type RequestParts } from './requests/request-parts.ts'
import { sliceToPython, type Run, type Slice } from './requests/run.ts'
import { send, type Session } from './requests/send.ts'

/** A page of a slice. */
export interface SlicePage {
  readonly records: readonly JsonObject[]
  /** The token of the next page; undefined on the last one. */
  readonly next: JsonValue | undefined
  /** Records before the filter. */
  readonly extracted: number
  /** The source asked to start the slice again. */
  readonly isReset: boolean
  /** The records of the page are unknown, because its answer was ignored. */
  readonly isIgnored: boolean
  readonly serverTime: number | null
}

/** Reads one page of a stream: its requester, its paginator and its record selector. */
export async function readPage(
  stream: Component,
  slice: Slice,
  token: JsonValue | undefined,
  run: Run,
  session: Session,
): Promise<SlicePage> {
  const retriever = stream.retriever as Component
  const requester = retriever.requester as Component
  const paginator = paginatorOf(retriever)
  const requested = token ?? initialToken(paginator, run)
  const names: Names = {
    stream_slice: sliceToPython(slice),
    next_page_token: requested === undefined ? null : { next_page_token: toPython(requested) },
  }
  const answer = await send(requester, run, session, {
    names,
    path: tokenPath(paginator, requested),
    extend(parts) {
      addPageOptions(parts, paginator, requested, run)
      if (requested === undefined || retriever.ignore_stream_slicer_parameters_on_paginated_requests !== true)
        addSliceOptions(parts, stream, slice, run)
    },
  })
  const empty = { records: [], next: undefined, extracted: 0, serverTime: answer.serverTime }
  const isGone = isPartition(slice) && GONE_STATUSES.includes(answer.response.status)
  const isIgnored = answer.kind === 'ignored' && !isGone
  if (isIgnored) {
    markIncomplete(run.context)
    run.context.log.warn('an answer was ignored, so its records are unknown', {
      request: answer.label,
      status: answer.response.status,
    })
  }
  if (answer.kind !== 'ok') return { ...empty, isReset: answer.kind === 'reset', isIgnored }
  const decoder = isComponent(retriever.decoder) ? retriever.decoder : null
  const bodies = decodeBody(answer.bytes, decoder, `${answer.label} answered ${answer.response.status}`)
  const { records, extracted } = selectRecords(
    bodies,
    { selector: retriever.record_selector as Component, transformations: stream.transformations },
    run,
    names,
  )
  const next = nextToken(
    paginator,
    { response: answer.response, body: bodies[0] ?? {}, extracted, lastRecord: records.at(-1), token: requested },
    run,
    names,
  )
  return { records, extracted, next, isReset: false, isIgnored: false, serverTime: answer.serverTime }
}

/** The children of one parent: the source says that there are none. */
function isPartition({ partition }: Slice): boolean {
  return Object.keys(partition).length > 0
}

/** Adds the values of the partition and of the window where the components say. */
function addSliceOptions(parts: RequestParts, stream: Component, slice: Slice, run: Run): void {
  for (const router of listRouters(stream)) {
    if (router.type === 'ListPartitionRouter') addPartitionOption(parts, router, router.cursor_field, slice, run)
    for (const parent of components(router.parent_stream_configs))
      addPartitionOption(parts, parent, parent.partition_field, slice, run)
  }
  const cursor = cursorOf(stream, run)
  if (cursor !== null) cursor.addOptions(parts, slice.window)
}

function addPartitionOption(
  parts: RequestParts,
  owner: Component,
  field: JsonValue | undefined,
  slice: Slice,
  run: Run,
): void {
  const value = toPython(slice.partition[run.text(field, owner)])
  if (isComponent(owner.request_option) && isTrue(value)) injectOption(parts, owner.request_option, value, run)
}

export function listRouters(stream: Component): Component[] {
  const { partition_router: router } = stream.retriever as Component
  return isComponent(router) ? [router] : components(router)
}

export function cursorOf(stream: Component, run: Run): DatetimeCursor | null {
  const { incremental_sync: cursor } = stream
  return isComponent(cursor) && cursor.type === 'DatetimeBasedCursor' ? new DatetimeCursor(cursor, run) : null
}
