import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import {
  TextBody,
  type HttpClient,
  type HttpResponse,
  type Query,
  type RequestBody as SentBody,
  type RequestOptions,
} from '../kit/http-client.ts'
import { encodePathSegment } from '../kit/origin.ts'

/**
 * A request. `{name}` in the path, the query, a header or the body is replaced by the parameter of that name: a cursor, a
 * page number, a time, or a field of the partition. Without a value, the query parameter, the header, the form field or
 * the member of the body is left out. Parameters that no placeholder names are sent in the query, or as GraphQL variables.
 */
export interface RequestTemplate {
  /** A path below the base URL. */
  readonly path: string
  /** 'GET' by default, 'POST' with a body or GraphQL. */
  readonly method?: 'GET' | 'POST'
  /** Parameters of every request: filters, fields, the order that `page` relies on. */
  readonly query?: Query
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: RequestBody
  readonly graphql?: GraphqlQuery
  /** Values of placeholders that have none, such as the cursor of the first page. */
  readonly defaults?: Readonly<Record<string, ParameterValue>>
}

/** The body of a POST request, in one of three forms. */
export type RequestBody = JsonBody | FormBody | TextTemplate

/** A body in JSON, with placeholders in its texts. */
export interface JsonBody {
  readonly json: JsonValue
}

/** A body of form fields. */
export interface FormBody {
  readonly form: Readonly<Record<string, string | number | boolean>>
}

/** A body of text, with placeholders. */
export interface TextTemplate {
  readonly text: string
  /** The content type. The default is `text/plain`. */
  readonly type?: string
}

/** A GraphQL query; its text is sent unchanged. */
export interface GraphqlQuery {
  readonly query: string
  readonly variables?: JsonObject
}

/** The value of a placeholder. */
export type ParameterValue = string | number | bigint | boolean
export type Parameters = Readonly<Record<string, ParameterValue | null | undefined>>

/** Checks a template and returns the function that sends it. `known` are the names that its placeholders may have. */
export function createRequester(
  client: HttpClient,
  stream: string,
  template: RequestTemplate,
  known: readonly string[],
): (parameters: Parameters, context: SyncContext, options?: RequestOptions) => Promise<HttpResponse> {
  const names = [...known, ...Object.keys(template.defaults ?? {})]
  const placed = checkTemplate(stream, template, names)
  const { path, query = {}, headers = {}, defaults = {}, body, graphql } = template
  const isPost = (template.method ?? (body === undefined && graphql === undefined ? 'GET' : 'POST')) === 'POST'
  return (given, context, options = {}) => {
    const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== null))
    const values = { ...defaults, ...set } as Readonly<Record<string, ParameterValue>>
    const free = Object.fromEntries(Object.entries(values).filter(([name]) => !placed.has(name)))
    const target = fillPath(path, values)
    const sent = { ...(fillMembers(query, values) as Query), ...(graphql === undefined && free) }
    const merged = { ...options, headers: { ...toTexts(fillMembers(headers, values)), ...options.headers } }
    if (!isPost) return client.get(target, sent, context, merged)
    const filled = graphql === undefined ? fillBody(body, values) : fillGraphql(graphql, values, free)
    return client.post(target, filled, context, { ...merged, query: sent })
  }
}

const PLACEHOLDER = /\{([A-Za-z_][\w.-]*)\}/g
const ONLY_PLACEHOLDER = /^\{([A-Za-z_][\w.-]*)\}$/

/** The names of all placeholders of a template. */
export function listPlaceholders({ path, query, headers, body, graphql }: RequestTemplate): string[] {
  const texts = listTexts([path, query, headers, body, graphql?.variables])
  return texts.flatMap((text) => [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name))
}

function checkTemplate(stream: string, template: RequestTemplate, names: readonly string[]): ReadonlySet<string> {
  const { method, body, graphql } = template
  const invalid = (what: string): SyncError => new SyncError('SYNC_INVALID', `Stream "${stream}": ${what}`)
  if (method === 'GET' && (body !== undefined || graphql !== undefined))
    throw invalid('a GET request has no body. Set `method` to POST, or leave it out.')
  if (body !== undefined && graphql !== undefined) throw invalid('set `body` or `graphql`, not both.')
  const placed = new Set(listPlaceholders(template))
  const unknown = [...placed].find((name) => !names.includes(name))
  if (unknown !== undefined) {
    const hint = didYouMean(unknown, names) || (names.length === 0 ? '' : ` The parameters are ${names.join(', ')}.`)
    throw invalid(`\`{${unknown}}\` is not a parameter of its paging or partitions.${hint}`)
  }
  return placed
}

function listTexts(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(listTexts) : []
}

type Values = Readonly<Record<string, ParameterValue>>

function fillPath(path: string, values: Values): string {
  return path.replaceAll(PLACEHOLDER, (_, name: string) => {
    const value = values[name]
    if (value === undefined)
      throw new SyncError('SYNC_INVALID', `The path ${path} needs a value of \`{${name}}\`. Set one in \`defaults\`.`)
    return encodePathSegment(typeof value === 'boolean' ? String(value) : value)
  })
}

/** Fills the values of an object; a member without a value is left out. */
function fillMembers(members: object, values: Values): JsonObject {
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, member]) => {
      const filled = fill(member as JsonValue, values)
      return filled === undefined ? [] : [[name, filled]]
    }),
  )
}

/** Undefined if a placeholder has no value. A text that is only a placeholder becomes the value, with its type. */
function fill(template: JsonValue | undefined, values: Values): JsonValue | undefined {
  if (Array.isArray(template))
    return template.flatMap((item) => {
      const filled = fill(item, values)
      return filled === undefined ? [] : [filled]
    })
  if (typeof template === 'object' && template !== null) return fillMembers(template, values)
  if (typeof template !== 'string') return template
  const only = ONLY_PLACEHOLDER.exec(template)?.[1]
  if (only !== undefined) return values[only]
  let isMissing = false
  const text = template.replaceAll(PLACEHOLDER, (_, name: string) => {
    isMissing ||= values[name] === undefined
    return String(values[name])
  })
  return isMissing ? undefined : text
}

function toTexts(members: JsonObject): Record<string, string> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, String(value)]))
}

function fillBody(body: RequestBody | undefined, values: Values): SentBody {
  if (body === undefined) return {}
  if ('json' in body) return fill(body.json, values) ?? null
  if ('form' in body) return new URLSearchParams(toTexts(fillMembers(body.form, values)))
  const text = fill(body.text, values)
  if (text === undefined)
    throw new SyncError('SYNC_INVALID', 'A placeholder of the text body has no value. Set one in `defaults`.')
  return new TextBody(String(text), body.type)
}

function fillGraphql({ query, variables = {} }: GraphqlQuery, values: Values, free: Values): JsonObject {
  return { query, variables: { ...fillMembers(variables, values), ...free } }
}
