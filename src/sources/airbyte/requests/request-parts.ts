import { SyncError, type JsonObject, type JsonValue } from '../../../contract/index.ts'
import type { Names } from '../jinja/interpolation.ts'
import { print } from '../jinja/printing.ts'
import { isDict, PyTuple, type PyValue } from '../jinja/values.ts'
import { isComponent, isRecord, textOf, type Component } from '../manifest/component.ts'
import { toJson, type Run } from './run.ts'

/** The parts of a request beside its address. */
export interface RequestParts {
  readonly query: [name: string, value: string][]
  readonly headers: Record<string, string>
  /** Members of a JSON body. */
  readonly json: JsonObject
  /** Fields of a form. */
  readonly form: [name: string, value: string][]
  /** A body that is a text as a whole. */
  text: string | null
}

export function createParts(): RequestParts {
  return { query: [], headers: {}, json: {}, form: [], text: null }
}

/** Adds the parameters, headers and body of a requester. */
export function addRequesterParts(parts: RequestParts, requester: Component, run: Run, names: Names): void {
  addQuery(parts, requester, run, names)
  for (const [name, value] of evaluateMapping(requester.request_headers, requester, run, names))
    setHeader(parts, name, print(value))
  const { request_body: body } = requester
  if (isComponent(body)) addBody(parts, body.type, body.value, requester, run, names)
  else if (isRecord(body)) addBody(parts, 'RequestBodyJsonObject', body, requester, run, names)
  addBody(parts, 'RequestBodyJsonObject', requester.request_body_json, requester, run, names)
  const { request_body_data: data } = requester
  addBody(parts, isRecord(data) ? 'RequestBodyUrlEncodedForm' : 'RequestBodyPlainText', data, requester, run, names)
}

function addQuery(parts: RequestParts, requester: Component, run: Run, names: Names): void {
  for (const [name, value] of evaluateMapping(requester.request_parameters, requester, run, names)) {
    if (isDict(value))
      throw new SyncError('CONNECTOR_FAILED', `Stream "${run.stream}": the parameter "${name}" is an object.`)
    addQueryValue(parts, name, value)
  }
}

/** A list is one parameter per item, as the HTTP library of the framework sends it. */
export function addQueryValue(parts: RequestParts, name: string, value: PyValue): void {
  for (const item of Array.isArray(value) ? value : value instanceof PyTuple ? value.items : [value])
    if (item !== null) parts.query.push([name, print(item)])
}

export function setHeader(parts: RequestParts, name: string, value: string): void {
  parts.headers[name.toLowerCase()] = value
}

function addBody(
  parts: RequestParts,
  type: string,
  value: JsonValue | undefined,
  requester: Component,
  run: Run,
  names: Names,
): void {
  if (value === undefined || value === null) return
  if (type === 'RequestBodyPlainText') {
    const text = run.value(value, requester, names)
    if (text !== null && text !== '') parts.text = typeof text === 'string' ? text : printBody(text)
  } else if (type === 'RequestBodyUrlEncodedForm') {
    for (const [name, item] of evaluateMapping(value, requester, run, names)) parts.form.push([name, print(item)])
  } else {
    const evaluated = evaluateNested(value, requester, run, names)
    if (isRecord(evaluated)) mergeJson(parts.json, evaluated)
  }
}

/** A text that reads as a literal of Python was JSON in the manifest. */
function printBody(value: PyValue): string {
  return JSON.stringify(toJson(value), (_, member: unknown) => (typeof member === 'bigint' ? Number(member) : member))
}

/** Evaluates a mapping of names to values, and drops those without a value. */
export function evaluateMapping(
  mapping: JsonValue | undefined,
  owner: Component,
  run: Run,
  names: Names,
): (readonly [string, PyValue])[] {
  if (typeof mapping === 'string') {
    // A whole mapping may be one template.
    const evaluated = run.optional(mapping, owner, names)
    return isDict(evaluated) ? Object.entries(evaluated).filter(([, value]) => value !== null) : []
  }
  if (!isRecord(mapping)) return []
  return Object.entries(mapping).flatMap(([name, value]) => {
    const key = run.name(name, owner, names)
    const evaluated = run.optional(value, owner, names)
    return key === null || evaluated === null ? [] : [[key, evaluated] as const]
  })
}

/** Evaluates the texts of a nested body, and drops members without a value. */
function evaluateNested(value: JsonValue, owner: Component, run: Run, names: Names): JsonValue {
  if (typeof value === 'string') return toJson(run.optional(value, owner, names))
  if (Array.isArray(value)) return value.map((item) => evaluateNested(item, owner, run, names))
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      const evaluated = evaluateNested(member ?? null, owner, run, names)
      return evaluated === null ? [] : [[run.name(name, owner, names) ?? name, evaluated]]
    }),
  )
}

function mergeJson(target: JsonObject, added: JsonObject): void {
  for (const [name, value] of Object.entries(added)) {
    const known = target[name]
    if (isRecord(known) && isRecord(value)) mergeJson(known, value)
    else target[name] = value
  }
}

/** Puts a value where a `RequestOption` says. */
export function injectOption(parts: RequestParts, option: Component, value: PyValue, run: Run): void {
  const path = Array.isArray(option.field_path)
    ? option.field_path.map((part) => run.text(part, option))
    : [run.text(textOf(option.field_name) ?? '', option)]
  const [name = ''] = path
  switch (option.inject_into) {
    case 'request_parameter':
      return addQueryValue(parts, name, value)
    case 'header':
      return setHeader(parts, name, print(value))
    case 'body_data':
      parts.form.push([name, print(value)])
      return
    case 'body_json':
      return mergeJson(parts.json, nest(path, toJson(value)))
    default:
      throw new SyncError('CONNECTOR_FAILED', `Stream "${run.stream}": a RequestOption has no known \`inject_into\`.`)
  }
}

function nest([name = '', ...others]: readonly string[], value: JsonValue): JsonObject {
  return { [name]: others.length === 0 ? value : nest(others, value) }
}
