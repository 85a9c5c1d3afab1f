import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { createHttpClient, type HttpResponse, type HttpClient, type RequestOptions } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { parseMetadata, type ODataMetadata } from './metadata.ts'
import type { ODataOptions } from './source.ts'

export interface EntityPage {
  readonly entities: readonly JsonObject[]
  /** As the service wrote them; their origin is checked only when they are followed. */
  readonly nextLink: string | null
  readonly deltaLink: string | null
  readonly answer: HttpResponse
}

/** An OData service over HTTP, for versions 4 and 2. */
export class ODataService {
  readonly #client: HttpClient
  readonly #query: Readonly<Record<string, string>>

  constructor({ url, auth, headers, query = {} }: ODataOptions) {
    this.#client = createHttpClient({
      baseUrl: url,
      ...(auth !== undefined && { auth }),
      ...(headers !== undefined && { headers }),
    })
    this.#query = query
  }

  async fetchMetadata(context: SyncContext): Promise<ODataMetadata> {
    const { body } = await this.#client.get('/$metadata', this.#query, context, {
      text: ['application/xml', 'text/xml'],
    })
    return parseMetadata(String(body))
  }

  /** Fetches one of our paths, or a link of the service. Returns null for an error status listed in `answers`. */
  async fetchPage(
    target: string,
    version: ODataMetadata['version'],
    context: SyncContext,
    options: PageRequestOptions = {},
  ): Promise<EntityPage | null> {
    const answer = await this.#get(target, version, context, options)
    if (answer.status >= 400) return null
    const { body } = answer
    // An error after the response has begun is reported in the body, with a success status.
    if (isObject(body) && (Object.hasOwn(body, 'error') || Object.hasOwn(body, '@odata.error')))
      throw new SyncError(
        'SOURCE_INVALID',
        'The service returned an error in the response body instead of all entities.',
      )
    const found = version === 4 ? parsePageV4(body) : parsePageV2(body)
    if (found === null)
      throw new SyncError(
        'SOURCE_INVALID',
        `The service returned a response that is not a version ${version} entity list.`,
      )
    return { ...found, answer }
  }

  /** Returns null if the entity no longer exists. */
  async fetchEntity(
    target: string,
    version: ODataMetadata['version'],
    context: SyncContext,
  ): Promise<JsonObject | null> {
    const { status, body } = await this.#get(target, version, context, { answers: [404, 410] })
    if (status >= 400) return null
    if (!isObject(body)) throw new SyncError('SOURCE_INVALID', 'The service returned a response that is not an entity.')
    return body
  }

  /** Resolves a link of a response to a full URL; rejects links to another origin. */
  resolveLink(link: string, { answer }: EntityPage, context: SyncContext): string {
    return this.#client.resolveLink(link, answer, context)
  }

  #get(
    target: string,
    version: ODataMetadata['version'],
    context: SyncContext,
    { prefer = [], ...options }: PageRequestOptions,
  ): Promise<HttpResponse> {
    const headers =
      version === 4
        ? // Without this, 64-bit integers and decimals arrive as numbers that lose precision.
          {
            accept: 'application/json;odata.metadata=minimal;IEEE754Compatible=true',
            'odata-maxversion': '4.01',
            ...(prefer.length > 0 && { prefer: prefer.join(',') }),
          }
        : { accept: 'application/json', maxdataserviceversion: '2.0' }
    // A link already contains all query parameters.
    return this.#client.get(target, /^https?:/i.test(target) ? {} : this.#query, context, { ...options, headers })
  }
}

interface PageRequestOptions extends Pick<RequestOptions, 'answers'> {
  readonly prefer?: readonly string[]
}

type PageContent = Pick<EntityPage, 'entities' | 'nextLink' | 'deltaLink'>

function parsePageV4(body: JsonValue): PageContent | null {
  if (!isObject(body) || !isEntityList(body.value)) return null
  return {
    entities: body.value,
    nextLink: readLink(body, '@odata.nextLink', '@nextLink'),
    deltaLink: readLink(body, '@odata.deltaLink', '@deltaLink'),
  }
}

/** Version 2 wraps the list in `results`, version 1 does not. */
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
  if (found !== undefined && typeof found !== 'string')
    throw new SyncError('SOURCE_INVALID', 'The service returned a link that is not a string.')
  return found ?? null
}
