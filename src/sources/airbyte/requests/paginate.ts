import { SyncError, type JsonObject, type JsonValue } from '../../../contract/index.ts'
import { toPython, type Names } from '../jinja/interpolation.ts'
import { isTrue } from '../jinja/operators.ts'
import { isComponent, textOf, type Component } from '../manifest/component.ts'
import { headersToPython } from './headers.ts'
import type { ReceivedResponse } from './error-handling.ts'
import { injectOption, type RequestParts } from './request-parts.ts'
import { toJson, type Run } from './run.ts'

/** The page before the next one. */
export interface FinishedPage {
  readonly response: ReceivedResponse
  readonly body: JsonValue
  readonly extracted: number
  readonly lastRecord: JsonObject | undefined
  /** The token that the page was requested with. */
  readonly token: JsonValue | undefined
}

/** The token of the first page; undefined if it has none. */
export function initialToken(paginator: Component | null, run: Run): JsonValue | undefined {
  const strategy = strategyOf(paginator)
  if (strategy === null || strategy.inject_on_first_request !== true) return undefined
  if (strategy.type === 'PageIncrement') return run.number(strategy.start_from_page, strategy) ?? 0
  return strategy.type === 'OffsetIncrement' ? 0 : undefined
}

/** The token of the next page; undefined at the end. */
export function nextToken(
  paginator: Component | null,
  page: FinishedPage,
  run: Run,
  names: Names,
): JsonValue | undefined {
  const strategy = strategyOf(paginator)
  if (strategy === null) return undefined
  switch (strategy.type) {
    case 'PageIncrement':
    case 'OffsetIncrement':
      return nextNumber(strategy, page, run)
    case 'CursorPagination':
      return nextCursor(strategy, page, run, names)
    default:
      throw new SyncError('CONNECTOR_FAILED', `Stream "${run.stream}": ${strategy.type} is not supported.`)
  }
}

function strategyOf(paginator: Component | null): Component | null {
  if (paginator?.type !== 'DefaultPaginator') return null
  return isComponent(paginator.pagination_strategy) ? paginator.pagination_strategy : null
}

function nextNumber(strategy: Component, { extracted, token, body }: FinishedPage, run: Run): number | undefined {
  const size = run.number(strategy.page_size, strategy, { response: toPython(body) })
  if (extracted === 0 || (size !== null && extracted < size)) return undefined
  const isPage = strategy.type === 'PageIncrement'
  const first = isPage ? (run.number(strategy.start_from_page, strategy) ?? 0) : 0
  return (typeof token === 'number' ? token : first) + (isPage ? 1 : extracted)
}

function nextCursor(
  strategy: Component,
  { response, body, extracted, lastRecord, token }: FinishedPage,
  run: Run,
  names: Names,
): JsonValue | undefined {
  const seen: Names = {
    ...names,
    response: toPython(body),
    headers: headersToPython(response.headers),
    last_record: toPython(lastRecord ?? null),
    last_page_size: extracted,
    last_page_token_value: toPython(token ?? null),
    page_size: run.number(strategy.page_size, strategy),
  }
  const { stop_condition: stop } = strategy
  if (stop !== undefined && stop !== null && run.test(stop, strategy, seen)) return undefined
  const value = run.value(strategy.cursor_value, strategy, seen)
  return isTrue(value) ? toJson(value) : undefined
}

/** The address of the next page, if the token is one. */
export function tokenPath(paginator: Component | null, token: JsonValue | undefined): string | undefined {
  const option = paginator?.page_token_option
  if (!isComponent(option) || option.type !== 'RequestPath') return undefined
  return token === undefined || token === null ? undefined : String(token)
}

/** Adds the token and the size of the page. */
export function addPageOptions(
  parts: RequestParts,
  paginator: Component | null,
  token: JsonValue | undefined,
  run: Run,
): void {
  const strategy = strategyOf(paginator)
  const tokenOption = paginator?.page_token_option
  const sizeOption = paginator?.page_size_option
  if (isComponent(tokenOption) && tokenOption.type === 'RequestOption' && token !== undefined)
    injectOption(parts, tokenOption, toPython(token), run)
  if (!isComponent(sizeOption) || strategy === null) return
  const size = run.number(strategy.page_size, strategy)
  if (size !== null && size !== 0) injectOption(parts, sizeOption, size, run)
}

export function paginatorOf(retriever: Component): Component | null {
  const { paginator } = retriever
  return isComponent(paginator) && textOf(paginator.type) !== 'NoPagination' ? paginator : null
}
