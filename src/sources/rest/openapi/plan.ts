import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { guessAuth, type AuthGuess } from './auth.ts'
import { invalidDocument, toObject, type OpenApiDocument } from './document.ts'
import { guessPaging } from './paging.ts'
import { findResponse, listParameters, normalizeName, type ApiParameter } from './parameters.ts'
import { findTimeFilter, guessDeleted, guessKey, guessUpdatedAt } from './records.ts'
import { findList, listProperties } from './schema.ts'

/** A stream that is written to the manifest, with what the document does not state about it. */
export interface PlannedStream {
  readonly id: string
  readonly operation: string
  readonly key: string
  readonly cursor: string | null
  readonly options: JsonObject
  readonly notes: readonly string[]
}

/** An operation that reads data and is not written, with the reason. */
export interface LeftOutOperation {
  readonly operation: string
  readonly reason: string
}

export interface OpenApiPlan {
  readonly title: string
  readonly baseUrl: string
  readonly auth: AuthGuess
  readonly streams: readonly PlannedStream[]
  readonly leftOut: readonly LeftOutOperation[]
  /** About the document as a whole. */
  readonly notes: readonly string[]
}

/** Derives the streams of a `rest` manifest from a document. `given` are values of parameters and `base_url`. */
export function planOpenApi(document: OpenApiDocument, given: Readonly<Record<string, string>> = {}): OpenApiPlan {
  const operations = document.paths.flatMap(([path, item]) =>
    item.get !== undefined ? [{ path, item, get: document.resolve(item.get, `GET ${path}`) }] : [],
  )
  const notes: string[] = []
  const baseUrl = given.base_url ?? readBaseUrl(document, notes)
  const planner = new Planner(document, operations, given)
  for (const operation of operations) planner.add(operation)
  const { title, version } = toObject(document.root.info)
  return {
    title: [title, version].filter((part) => typeof part === 'string').join(' '),
    baseUrl,
    auth: guessAuth(
      document,
      operations.map(({ get }) => get),
    ),
    streams: planner.streams,
    leftOut: planner.leftOut,
    notes,
  }
}

function readBaseUrl({ root, file }: OpenApiDocument, notes: string[]): string {
  const servers = Array.isArray(root.servers) ? root.servers.map(toObject) : []
  const [first, ...others] = servers
  const { url, variables } = first ?? {}
  const values = toObject(variables)
  const filled = String(url ?? '').replace(/\{(\w+)\}/g, (whole, name: string) => {
    const { default: value } = toObject(values[name])
    if (typeof value !== 'string') return whole
    notes.push(`the variable \`${name}\` of the server was set to its default, ${value}`)
    return value
  })
  if (!URL.canParse(filled) || !/^https?:/.test(filled) || filled.includes('{'))
    throw invalidDocument(file, `\`servers\` has no absolute URL. Add --set base_url=<url>`)
  if (others.length > 0) notes.push(`the first of ${servers.length} servers was chosen`)
  return filled.replace(/\/+$/, '')
}

interface GetOperation {
  readonly path: string
  readonly item: JsonObject
  readonly get: JsonObject
}

class Planner {
  readonly streams: PlannedStream[] = []
  readonly leftOut: LeftOutOperation[] = []
  readonly #document: OpenApiDocument
  readonly #operations: readonly GetOperation[]
  readonly #given: Readonly<Record<string, string>>
  readonly #ids = new Set<string>()
  /** Streams without parents, by path. */
  readonly #roots = new Map<string, PlannedStream & { readonly item: JsonValue | undefined }>()

  constructor(document: OpenApiDocument, operations: readonly GetOperation[], given: Readonly<Record<string, string>>) {
    this.#document = document
    this.#operations = operations
    this.#given = given
  }

  add({ path, item: pathItem, get }: GetOperation): void {
    const operation = `GET ${path}`
    // A path that ends with a parameter reads one record.
    if (/\}[^/]*\/?$/.test(path)) return
    const response = findResponse(this.#document, get, operation)
    if (response === null) return this.#leaveOut(operation, 'it has no response in JSON')
    const list = findList(this.#document, response.schema, { place: operation, path })
    if (typeof list === 'string') return this.#leaveOut(operation, list)
    const parameters = listParameters(this.#document, [pathItem, get], operation)
    const parent = this.#findParent(path, parameters)
    if (typeof parent === 'string') return this.#leaveOut(operation, parent)
    const fixed = this.#fixParameters(parameters)
    if (typeof fixed === 'string') return this.#leaveOut(operation, fixed)
    const name = path.split('/').findLast((part) => part !== '' && !part.startsWith('{')) ?? 'records'
    const detail = this.#findDetail(path)
    const key = guessKey(this.#document, list.item, { place: operation, name, detail: detail?.parameter ?? null })
    if (key === null)
      return this.#leaveOut(operation, 'the schema of its records has no field that looks like a primary key')
    const paging = guessPaging({ document: this.#document, place: operation, parameters, key, ...response })
    if (typeof paging === 'string')
      return this.#leaveOut(operation, `${paging}: without it only the first page would be read`)
    const changes = this.#planChanges(list.item, parameters, paging.page, operation)
    const notes = [...paging.notes, ...parent.notes, ...changes.notes]
    if (get.deprecated === true) notes.push('it is deprecated')
    if (Array.isArray(get.servers) || Array.isArray(pathItem.servers))
      notes.push('it names servers of its own, which are not used')
    const lookup = detail === null || parent.rule !== null ? null : this.#planLookup(detail, key)
    const options: JsonObject = {
      path: parent.path,
      ...(list.at !== '' && { records: list.at }),
      ...(fixed.query !== null && { query: fixed.query }),
      ...(fixed.headers !== null && { headers: fixed.headers }),
      ...(parent.rule !== null && { partitions: parent.rule }),
      page: paging.page,
      ...changes.options,
      ...(lookup !== null && { lookup }),
    }
    const stream = { id: this.#toId(path), operation, key, cursor: changes.cursor, options, notes }
    this.streams.push(stream)
    if (parent.rule === null) this.#roots.set(path.replace(/\/$/, ''), { ...stream, item: list.item })
  }

  #leaveOut(operation: string, reason: string): void {
    this.leftOut.push({ operation, reason })
  }

  /** The path of the request, with the parent whose records fill its parameter. */
  #findParent(
    path: string,
    parameters: readonly ApiParameter[],
  ): { readonly path: string; readonly rule: JsonObject | null; readonly notes: readonly string[] } | string {
    const filled = path.replace(/\{([^}]+)\}/g, (whole, name: string) => {
      const known = this.#given[name] ?? parameters.find((one) => one.in === 'path' && one.name === name)?.value
      return known === undefined ? whole : encodeURIComponent(String(known))
    })
    const names = [...filled.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name)
    const [name] = names
    if (name === undefined) return { path: filled, rule: null, notes: [] }
    const set = names.map((one) => `--set ${one}=<value>`).join(' ')
    if (names.length > 1)
      return `its path has several parameters, and parents have no parents themselves. Add ${set} to read one of each`
    const before = path.slice(0, path.indexOf(`/{${name}}`))
    const parent = this.#roots.get(before)
    if (parent === undefined) return `no list gives the values of \`${name}\`. Add ${set}`
    const field = this.#findParentField(name, parent)
    return {
      path: filled.replace(`{${name}}`, `{parent.${field}}`),
      rule: {
        parent: parent.id,
        include: { [toSnakeCase(name === 'id' ? `${parent.id}_id` : name)]: `parent.${field}` },
      },
      notes: [`its parameter \`${name}\` is taken from \`${field}\` of ${parent.id}`],
    }
  }

  #findParentField(
    name: string,
    { item, key, operation }: PlannedStream & { readonly item: JsonValue | undefined },
  ): string {
    const fields = [...listProperties(this.#document, item, operation).keys()]
    return fields.find((field) => normalizeName(field) === normalizeName(name)) ?? key
  }

  /** Required parameters that have one value. */
  #fixParameters(
    parameters: readonly ApiParameter[],
  ): { query: JsonObject | null; headers: JsonObject | null } | string {
    const query: JsonObject = {}
    const headers: JsonObject = {}
    for (const { name, in: location, isRequired, value } of parameters) {
      if (location === 'path' || location === 'cookie') continue
      const known = this.#given[name] ?? (isRequired ? value : undefined)
      if (known !== undefined)
        (location === 'header' ? headers : query)[name] = location === 'header' ? String(known) : known
      else if (isRequired && !isPagingName(name))
        return `it requires \`${name}\`, which has no default. Add --set ${name}=<value>`
    }
    const orNull = (values: JsonObject): JsonObject | null => (Object.keys(values).length === 0 ? null : values)
    return { query: orNull(query), headers: orNull(headers) }
  }

  #planChanges(
    item: JsonValue | undefined,
    parameters: readonly ApiParameter[],
    page: JsonObject,
    place: string,
  ): { readonly cursor: string | null; readonly options: JsonObject; readonly notes: readonly string[] } {
    const { field, note } = guessUpdatedAt(this.#document, item, place)
    const filter = findTimeFilter(parameters)
    if (filter === null || field === null)
      return {
        cursor: field,
        options: {},
        notes: [
          ...(note === undefined ? [] : [note]),
          filter === null
            ? 'it has no parameter for the time of the last change, so every cycle reads the complete list'
            : `it has \`${filter.since}\`, but its records have no time of the last change, so every cycle reads the complete list`,
        ],
      }
    if (!['none', 'token', 'link'].includes(String(page.kind)))
      return {
        cursor: field,
        options: {},
        notes: [
          `it has \`${filter.since}\`, but pages by number or offset lose records that change meanwhile, so every cycle reads the complete list`,
        ],
      }
    const deleted = guessDeleted(this.#document, item, place)
    const follow = { kind: 'window', ...filter, page }
    if (deleted !== null)
      return {
        cursor: field,
        options: { deleted, follow },
        notes: [`\`${deleted}\` is assumed to mark deleted records, also in answers to \`${filter.since}\``],
      }
    return {
      cursor: field,
      options: { follow, deletes: 'sweep' },
      notes: [
        `it does not state how deletions are reported, so every cycle reads the complete list; with \`deletes: ignore\` it reads only changes by \`${filter.since}\``,
      ],
    }
  }

  #findDetail(path: string): { readonly path: string; readonly parameter: string; readonly get: JsonObject } | null {
    const prefix = `${path.replace(/\/$/, '')}/`
    for (const operation of this.#operations) {
      const parameter = operation.path.startsWith(prefix)
        ? /^\{([^}]+)\}\/?$/.exec(operation.path.slice(prefix.length))?.[1]
        : undefined
      if (parameter !== undefined) return { path: operation.path, parameter, get: operation.get }
    }
    return null
  }

  /** The request for one record, if its response has the key. */
  #planLookup(
    { path, get, parameter }: { readonly path: string; readonly parameter: string; readonly get: JsonObject },
    key: string,
  ): JsonObject | null {
    if (/\{/.test(path.replace(`{${parameter}}`, ''))) return null
    const place = `GET ${path}`
    const response = findResponse(this.#document, get, place)
    if (response === null) return null
    const request = path.replace(`{${parameter}}`, '{key}')
    const members = listProperties(this.#document, response.schema, place)
    if (members.has(key)) return { path: request }
    const nested = [...members].filter(([, member]) => listProperties(this.#document, member, place).has(key))
    return nested.length === 1 ? { path: request, record: nested[0]?.[0] ?? '' } : null
  }

  /** The last name of the path, or all of them if another stream has it. */
  #toId(path: string): string {
    const parts = path.split('/').filter((part) => part !== '' && !part.startsWith('{'))
    const candidates = [parts.slice(-1), parts.slice(-2), parts].map(toStreamName)
    const free = candidates.find((id) => !this.#ids.has(id)) ?? this.#number(candidates.at(-1) ?? 'records')
    this.#ids.add(free)
    return free
  }

  #number(id: string): string {
    for (let number = 2; ; number++) if (!this.#ids.has(`${id}_${number}`)) return `${id}_${number}`
  }
}

/** Required parameters that the paging sets itself. */
function isPagingName(name: string): boolean {
  return /^(?:page|offset|skip|limit|perpage|pagesize|size|pagenumber|start|startindex)$/.test(normalizeName(name))
}

function toStreamName(names: readonly string[]): string {
  const name = names
    .join('_')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .slice(0, 50)
  return name === '' ? 'records' : name
}

function toSnakeCase(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .toLowerCase()
}
