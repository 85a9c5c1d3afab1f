import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { createHttpClient, type HttpResponse, type HttpClient, type RequestOptions } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { parseMetadata, type ODataMetadata } from './metadata.ts'
import type { ODataOptions } from './source.ts'

export interface EntityPage {
  readonly entities: readonly JsonObject[]
  /** As the service wrote them; they are held against its origin only where they are followed. */
  readonly nextLink: string | null
  readonly deltaLink: string | null
  readonly answer: HttpResponse
}

/** A service behind HTTP: what it answers, told apart by the version it speaks. */
export class ODataService {
  readonly #client: HttpClient
  readonly #query: Readonly<Record<string, string>>

  constructor({ url, auth, headers, query = {} }: ODataOptions) {
    this.#client = createHttpClient({ baseUrl: url, ...(auth !== undefined && { auth }), ...(headers !== undefined && { headers }) })
    this.#query = query
  }

  async fetchMetadata(context: SyncContext): Promise<ODataMetadata> {
    const { body } = await this.#client.get('/$metadata', this.#query, context, { text: ['application/xml', 'text/xml'] })
    return parseMetadata(String(body))
  }

  /** A path of ours, or a link of the service. Null for a status that is expected in `answers`. */
  async fetchPage(target: string, version: ODataMetadata['version'], context: SyncContext, options: PageRequestOptions = {}): Promise<EntityPage | null> {
    const answer = await this.#get(target, version, context, options)
    if (answer.status >= 400) return null
    const { body } = answer
    // What went wrong after the answer had begun stands in it, under a status that says all is well.
    if (isObject(body) && (Object.hasOwn(body, 'error') || Object.hasOwn(body, '@odata.error'))) throw new SyncError('SOURCE_INVALID', 'The service answered with an error instead of all its entities.')
    const found = version === 4 ? parsePageV4(body) : parsePageV2(body)
    if (found === null) throw new SyncError('SOURCE_INVALID', `The service answered with something that is not a list of entities of version ${version}.`)
    return { ...found, answer }
  }

  /** Null when it is gone. */
  async fetchEntity(target: string, version: ODataMetadata['version'], context: SyncContext): Promise<JsonObject | null> {
    const { status, body } = await this.#get(target, version, context, { answers: [404, 410] })
    if (status >= 400) return null
    if (!isObject(body)) throw new SyncError('SOURCE_INVALID', 'The service answered with something that is not an entity.')
    return body
  }

  /** A link in an answer, as a full URL; refused where it leads away from the service. */
  resolveLink(link: string, { answer }: EntityPage, context: SyncContext): string {
    return this.#client.resolveLink(link, answer, context)
  }

  #get(target: string, version: ODataMetadata['version'], context: SyncContext, { prefer = [], ...options }: PageRequestOptions): Promise<HttpResponse> {
    const headers = version === 4
      // Without it, integers of 64 bits and decimals come as numbers that not everybody can read exactly.
      ? { accept: 'application/json;odata.metadata=minimal;IEEE754Compatible=true', 'odata-maxversion': '4.01', ...(prefer.length > 0 && { prefer: prefer.join(',') }) }
      : { accept: 'application/json', maxdataserviceversion: '2.0' }
    // A link has all it needs in it.
    return this.#client.get(target, /^https?:/i.test(target) ? {} : this.#query, context, { ...options, headers })
  }
}

interface PageRequestOptions extends Pick<RequestOptions, 'answers'> {
  readonly prefer?: readonly string[]
}

type PageContent = Pick<EntityPage, 'entities' | 'nextLink' | 'deltaLink'>

function parsePageV4(body: JsonValue): PageContent | null {
  if (!isObject(body) || !isEntityList(body.value)) return null
  return { entities: body.value, nextLink: readLink(body, '@odata.nextLink', '@nextLink'), deltaLink: readLink(body, '@odata.deltaLink', '@deltaLink') }
}

/** Version 2 has the list in `results`, version 1 bare. */
function parsePageV2(body: JsonValue): PageContent | null {
  const d = isObject(body) ? body.d : undefined
  const entities = isObject(d) ? d.results : d
  if (!isEntityList(entities)) return null
  return { entities, nextLink: isObject(d) ? readLink(d, '__next') : null, deltaLink: null }
}

function isEntityList(value: JsonValue | undefined): value is JsonObject[] {
  return Array.isArray(value) && value.every(isObject)
}

function readLink(body: JsonObject, ...names: string[]): string | null {
  const found = names.map((name) => body[name]).find((value) => value !== undefined && value !== null)
  if (found !== undefined && typeof found !== 'string') throw new SyncError('SOURCE_INVALID', 'The service gave a link that is not a text.')
  return found ?? null
}
