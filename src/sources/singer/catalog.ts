import { SyncError, type JsonObject, type JsonValue, type Mode, type SyncContext } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { toTapExitError } from './tap-exit-error.ts'
import { isObject, toStringList } from './message.ts'
import type { Redact } from './tap-config.ts'
import { TapProcess, type TapProgram } from './tap-process.ts'

/** A tap's catalog: streams with their schemas, and metadata for selecting them. */
export interface TapCatalog {
  readonly streams: readonly JsonObject[]
}

export interface StreamSelection {
  /** The replication key; the tap's own by default. */
  readonly cursor?: string | undefined
  readonly method?: 'INCREMENTAL' | 'LOG_BASED' | undefined
}

const CATALOG_CHARACTERS_MAX = 64_000_000
const DISCOVERY_TIMEOUT_MS = 600_000

export async function readCatalog(
  program: TapProgram,
  config: string,
  redact: Redact,
  context: Pick<SyncContext, 'clock' | 'log' | 'signal'>,
): Promise<TapCatalog> {
  const [name = ''] = program.command
  const tap = await TapProcess.start(program, { config, discover: true }, redact, context)
  try {
    const until = context.clock.now() + DISCOVERY_TIMEOUT_MS
    let text = ''
    for (;;) {
      const lines = await tap.readLines(until, context.signal)
      if (lines === null) break
      if (lines.length === 0)
        throw new SyncError(
          'SOURCE_TIMEOUT',
          `${name} did not list its streams within ${DISCOVERY_TIMEOUT_MS / 60_000} minutes.`,
        )
      text += lines.map((line) => line.text ?? '').join('\n')
      if (text.length > CATALOG_CHARACTERS_MAX)
        throw new SyncError(
          'CONNECTOR_FAILED',
          `${name} returned a catalog of more than ${CATALOG_CHARACTERS_MAX} characters.`,
        )
    }
    const code = await tap.waitForExit(until, context.signal)
    if (code !== 0) throw toTapExitError(name, code ?? 0, tap.lastStderrLine, 'was asked to list its streams and')
    return parseCatalog(text, name)
  } finally {
    await tap.stop()
  }
}

function parseCatalog(text: string, name: string): TapCatalog {
  let catalog: JsonValue = null
  try {
    catalog = parseJson(text)
  } catch {
    // Reported below.
  }
  if (!isCatalog(catalog))
    throw new SyncError(
      'CONNECTOR_FAILED',
      `${name} did not return a catalog with \`--discover\`. If it cannot list its streams, set \`catalog\`, or \`catalog: none\`.`,
    )
  return catalog
}

export function isCatalog(catalog: JsonValue | undefined): catalog is JsonObject & TapCatalog {
  return isObject(catalog) && Array.isArray(catalog['streams']) && catalog['streams'].every(isObject)
}

export interface CatalogSelection {
  readonly catalog: TapCatalog
  /** Maps the names in the tap's messages to the selected names. */
  readonly names: ReadonlyMap<string, string>
}

/** Selects exactly these streams with all their fields. In replace mode a full table is requested. */
export function selectStreams(
  catalog: TapCatalog,
  selections: ReadonlyMap<string, StreamSelection>,
  mode: Mode,
  program: string,
): CatalogSelection {
  const names = new Map<string, string>()
  const streams = new Map<JsonObject, StreamSelection>()
  for (const [wanted, selection] of selections) {
    const stream =
      catalog.streams.find((entry) => getStreamId(entry) === wanted) ??
      catalog.streams.find((entry) => entry['stream'] === wanted)
    if (stream === undefined) {
      const known = catalog.streams.map(getStreamId)
      throw new SyncError(
        'SOURCE_NOT_FOUND',
        `${program} has no stream "${wanted}". Available: ${known.slice(0, 20).join(', ')}${known.length > 20 ? ' …' : ''}.`,
      )
    }
    streams.set(stream, selection)
    for (const name of [getStreamId(stream), ...toStringList(stream['stream'])])
      if (!names.has(name)) names.set(name, wanted)
  }
  return {
    catalog: {
      ...catalog,
      streams: catalog.streams.map((stream) => applySelection(stream, streams.get(stream), mode)),
    },
    names,
  }
}

/** Set in the metadata and at the stream itself, because older taps read only the latter. */
function applySelection(stream: JsonObject, selection: StreamSelection | undefined, mode: Mode): JsonObject {
  const selected = selection !== undefined
  const method =
    mode === 'replace'
      ? 'FULL_TABLE'
      : (selection?.method ?? (selection?.cursor === undefined ? undefined : 'INCREMENTAL'))
  const cursor = mode === 'replace' ? undefined : selection?.cursor
  const replication = {
    selected,
    ...(selected && method !== undefined && { 'replication-method': method }),
    ...(cursor !== undefined && { 'replication-key': cursor }),
  }
  const entries = Array.isArray(stream['metadata']) ? stream['metadata'].filter(isObject) : []
  const metadata = entries.map((entry) => {
    const fields = isObject(entry['metadata']) ? entry['metadata'] : {}
    if (isStreamMetadata(entry)) return { ...entry, metadata: { ...fields, ...replication } }
    return fields['inclusion'] === 'unsupported' || fields['selected'] === false
      ? entry
      : { ...entry, metadata: { ...fields, selected } }
  })
  return {
    ...stream,
    selected,
    metadata,
    schema: isObject(stream['schema']) ? { ...stream['schema'], selected } : stream['schema'],
    ...(selected && method !== undefined && { replication_method: method }),
    ...(cursor !== undefined && { replication_key: cursor }),
  }
}

function isStreamMetadata(entry: JsonObject): boolean {
  return Array.isArray(entry['breadcrumb']) && entry['breadcrumb'].length === 0
}

function getStreamId(stream: JsonObject): string {
  return toStringList(stream['tap_stream_id'])[0] ?? toStringList(stream['stream'])[0] ?? ''
}

/** A stream that a tap offers, with its key and possible cursors. */
export interface DiscoveredStream {
  readonly id: string
  readonly key: string[]
  readonly cursor?: string
  readonly candidates: string[]
  readonly columns: string[]
}

export function listStreams({ streams }: TapCatalog): DiscoveredStream[] {
  return streams.map((stream) => {
    const metadata = Array.isArray(stream['metadata'])
      ? stream['metadata'].filter(isObject).find(isStreamMetadata)
      : undefined
    const fields = isObject(metadata?.['metadata']) ? metadata['metadata'] : {}
    const properties = isObject(stream['schema']) ? stream['schema']['properties'] : undefined
    const candidates = toStringList(fields['valid-replication-keys'])
    const isFullTable = [fields['forced-replication-method'], stream['replication_method']].includes('FULL_TABLE')
    const cursor = isFullTable
      ? undefined
      : (toStringList(fields['replication-key'])[0] ?? toStringList(stream['replication_key'])[0] ?? candidates[0])
    const key = toStringList(fields['table-key-properties'])
    return {
      id: getStreamId(stream),
      key: key.length > 0 ? key : toStringList(stream['key_properties']),
      ...(cursor !== undefined && { cursor }),
      candidates,
      columns: Object.keys(isObject(properties) ? properties : {}),
    }
  })
}
