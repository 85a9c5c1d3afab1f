import { SyncError, type JsonObject, type JsonValue, type Mode, type SyncContext } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { toTapExitError } from './tap-exit-error.ts'
import { isObject, toStringList } from './message.ts'
import type { Redact } from './tap-config.ts'
import { TapProcess, type TapProgram } from './tap-process.ts'

/** As a tap tells it: streams with their schemas, and metadata by which they are chosen. */
export interface TapCatalog {
  readonly streams: readonly JsonObject[]
}

export interface StreamSelection {
  /** How the tap is to follow it; the tap's own way unless given. */
  readonly cursor?: string | undefined
  readonly method?: 'INCREMENTAL' | 'LOG_BASED' | undefined
}

const CATALOG_CHARACTERS_MAX = 64_000_000
const DISCOVERY_TIMEOUT_MS = 600_000

export async function readCatalog(program: TapProgram, config: string, redact: Redact, context: Pick<SyncContext, 'clock' | 'log' | 'signal'>): Promise<TapCatalog> {
  const tap = await TapProcess.start(program, { config, discover: true }, redact, context)
  try {
    const until = context.clock.now() + DISCOVERY_TIMEOUT_MS
    let text = ''
    for (;;) {
      const lines = await tap.readLines(until, context.signal)
      if (lines === null) break
      if (lines.length === 0) throw new SyncError('SOURCE_TIMEOUT', `${program.command[0]} took more than ${DISCOVERY_TIMEOUT_MS / 60_000} minutes to list its streams.`)
      text += lines.map((line) => line.text ?? '').join('\n')
      if (text.length > CATALOG_CHARACTERS_MAX) throw new SyncError('CONNECTOR_FAILED', `${program.command[0]} lists its streams in more than ${CATALOG_CHARACTERS_MAX} characters.`)
    }
    const code = await tap.waitForExit(until, context.signal)
    if (code !== 0) throw toTapExitError(program.command[0]!, code ?? 0, tap.lastStderrLine, 'was asked for its streams and')
    return parseCatalog(text, program.command[0]!)
  } finally {
    await tap.stop()
  }
}

function parseCatalog(text: string, name: string): TapCatalog {
  let catalog: JsonValue = null
  try {
    catalog = parseJson(text)
  } catch {
    // Said below.
  }
  if (!isCatalog(catalog)) throw new SyncError('CONNECTOR_FAILED', `${name} was asked for its streams and answered with something else; if it cannot list them, give its \`catalog\`, or \`catalog: none\`.`)
  return catalog
}

export function isCatalog(catalog: JsonValue | undefined): catalog is JsonObject & TapCatalog {
  return isObject(catalog) && Array.isArray(catalog['streams']) && catalog['streams'].every(isObject)
}

export interface CatalogSelection {
  readonly catalog: TapCatalog
  /** What the tap may call them in its messages, by the name they were chosen with. */
  readonly names: ReadonlyMap<string, string>
}

/** The catalog in which these streams are chosen, with all their fields, and no others. A whole reading is asked for as such. */
export function selectStreams(catalog: TapCatalog, choices: ReadonlyMap<string, StreamSelection>, mode: Mode, program: string): CatalogSelection {
  const names = new Map<string, string>()
  const streams = new Map<JsonObject, StreamSelection>()
  for (const [wanted, choice] of choices) {
    const stream = catalog.streams.find((entry) => getStreamId(entry) === wanted) ?? catalog.streams.find((entry) => entry['stream'] === wanted)
    if (stream === undefined) {
      const known = catalog.streams.map(getStreamId)
      throw new SyncError('SOURCE_NOT_FOUND', `${program} has no stream "${wanted}"; it has ${known.slice(0, 20).join(', ')}${known.length > 20 ? ' …' : ''}.`)
    }
    streams.set(stream, choice)
    for (const name of [getStreamId(stream), ...toStringList(stream['stream'])]) if (!names.has(name)) names.set(name, wanted)
  }
  return { catalog: { ...catalog, streams: catalog.streams.map((stream) => applySelection(stream, streams.get(stream), mode)) }, names }
}

/** Told twice, because taps differ in where they look: in the metadata, and before there was such a thing at the stream itself. */
function applySelection(stream: JsonObject, choice: StreamSelection | undefined, mode: Mode): JsonObject {
  const selected = choice !== undefined
  const method = mode === 'replace' ? 'FULL_TABLE' : (choice?.method ?? (choice?.cursor === undefined ? undefined : 'INCREMENTAL'))
  const cursor = mode === 'replace' ? undefined : choice?.cursor
  const how = { selected, ...(selected && method !== undefined && { 'replication-method': method }), ...(cursor !== undefined && { 'replication-key': cursor }) }
  const given = Array.isArray(stream['metadata']) ? stream['metadata'].filter(isObject) : []
  const metadata = given.map((entry) => {
    const about = isObject(entry['metadata']) ? entry['metadata'] : {}
    if (isStreamMetadata(entry)) return { ...entry, metadata: { ...about, ...how } }
    return about['inclusion'] === 'unsupported' || about['selected'] === false ? entry : { ...entry, metadata: { ...about, selected } }
  })
  return {
    ...stream, selected, metadata, schema: isObject(stream['schema']) ? { ...stream['schema'], selected } : stream['schema'],
    ...(selected && method !== undefined && { replication_method: method }), ...(cursor !== undefined && { replication_key: cursor }),
  }
}

function isStreamMetadata(entry: JsonObject): boolean {
  return Array.isArray(entry['breadcrumb']) && entry['breadcrumb'].length === 0
}

function getStreamId(stream: JsonObject): string {
  return toStringList(stream['tap_stream_id'])[0] ?? toStringList(stream['stream'])[0] ?? ''
}

/** A stream that a tap offers, and how it can be read. */
export interface DiscoveredStream {
  readonly id: string
  readonly key: string[]
  readonly cursor?: string
  readonly candidates: string[]
  /** Everything a record may have. */
  readonly columns: string[]
}

export function listStreams({ streams }: TapCatalog): DiscoveredStream[] {
  return streams.map((stream) => {
    const metadata = Array.isArray(stream['metadata']) ? stream['metadata'].filter(isObject).find(isStreamMetadata) : undefined
    const about = isObject(metadata?.['metadata']) ? metadata['metadata'] : {}
    const properties = isObject(stream['schema']) ? stream['schema']['properties'] : undefined
    const candidates = toStringList(about['valid-replication-keys'])
    const isWhole = [about['forced-replication-method'], stream['replication_method']].includes('FULL_TABLE')
    const cursor = isWhole ? undefined : (toStringList(about['replication-key'])[0] ?? toStringList(stream['replication_key'])[0] ?? candidates[0])
    const key = toStringList(about['table-key-properties'])
    return { id: getStreamId(stream), key: key.length > 0 ? key : toStringList(stream['key_properties']), ...(cursor !== undefined && { cursor }), candidates, columns: Object.keys(isObject(properties) ? properties : {}) }
  })
}
