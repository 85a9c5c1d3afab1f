import { required } from '../../values/required.ts'
import type { ErrorObject } from 'ajv'
import { Ajv } from 'ajv'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { isMap, isScalar, LineCounter, parseDocument, type Document, type Node } from 'yaml'
import { isSyncError, SyncError, type DeleteMode, type SchemaMode } from '../../contract/index.ts'
import { registerNamedSecret } from '../../redaction/known-secrets.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import { describeValue } from '../names.ts'
import type { ScheduleInput } from '../schedule.ts'
import type { JsonSchema } from '../../worker/schema.ts'
import { withEnvFile, type Environment } from '../settings.ts'
import { Worker } from '../../worker/worker.ts'
import type { SourceStream, StreamDeclaration } from '../../sources/kit/define-source.ts'
import type { SourceName } from '../../sources/registry.ts'
import { CONNECTORS } from './connectors.ts'
import { MANIFEST_SCHEMA } from './schema.ts'
import { selectStreams, type StreamSelection } from './select-streams.ts'

/** A validated `tidemark.yaml`. */
export interface ManifestFile {
  readonly name?: string
  readonly connector: SourceName
  readonly config: Readonly<Record<string, unknown>>
  readonly select?: StreamSelection
  readonly streams: readonly ManifestStream[]
}

export interface ManifestStream extends StreamDeclaration {
  readonly schema_strategy?: 'discovery' | 'declared'
  readonly schema?: JsonSchema | SchemaMode
  readonly schema_changes?: SchemaMode
  readonly history?: { readonly keep_days: number } | false
  readonly deletes?: DeleteMode
  readonly state_handling?: 'platform_registry'
  readonly schedule?: ScheduleInput
  readonly backfill_schedule?: ScheduleInput
}

/** Creates the worker of a manifest: a database and a sync, or a tracked pair, for every selected stream. */
export async function buildWorker(
  path: string,
  shownFile: string,
  environment: Environment = process.env,
): Promise<Worker> {
  const text = new ManifestDocument(path, shownFile)
  const { name, connector, config, select, streams } = text.check(environment)
  if (streams.length === 0)
    throw text.error(['streams'], '`streams` is missing; list the available streams with `tidemark discover`')
  const opened = await CONNECTORS[connector].open(config, dirname(path))
  const worker = new Worker(name === undefined ? {} : { name })
  const selected = new Set(
    selectStreams(
      streams.map(({ id }) => id),
      select,
    ),
  )
  if (selected.size === 0) throw text.error(['select'], '`select` matches none of the streams')
  for (const [index, stream] of streams.entries()) {
    if (!selected.has(stream.id)) continue
    try {
      declareStream(worker, stream, opened.stream(stream))
    } catch (error) {
      if (!isSyncError(error)) throw error
      throw text.error(['streams', index], `${stream.id}: ${error.message}`, error.code)
    }
  }
  return worker
}

/** Reads and validates a manifest. Secrets stay names. */
export function readManifest(path: string, shownFile: string, environment: Environment = process.env): ManifestFile {
  return new ManifestDocument(path, shownFile).check(environment)
}

function declareStream(
  worker: Worker,
  {
    id,
    schema,
    schema_changes: schemaChanges,
    history,
    deletes,
    schedule,
    backfill_schedule: backfillSchedule,
    mode,
    safety_window: safetyWindow,
  }: ManifestStream,
  source: SourceStream,
): void {
  // A full read would silently ignore these options.
  const isWhole = 'execute' in source && source.mode === 'replace'
  if (isWhole && mode === 'incremental')
    throw new SyncError('SYNC_INVALID', 'it cannot be incremental without a `cursor`; set one')
  if (isWhole && safetyWindow !== undefined) throw new SyncError('SYNC_INVALID', 'a full refresh has no safety window')
  if ('execute' in source && mode === 'full_refresh' && !isWhole)
    throw new SyncError('SYNC_INVALID', 'a full refresh is not possible, because this source only returns changes')
  if ('execute' in source && backfillSchedule !== undefined)
    throw new SyncError('SYNC_INVALID', 'it has no backfill, so `backfill_schedule` has no effect; use `schedule`')
  const kept =
    history === undefined ? {} : { history: history === false ? (false as const) : { keepDays: history.keep_days } }
  const database = worker.database(id, {
    ...(schema !== undefined && { schema }),
    ...(schemaChanges !== undefined && { schemaChanges }),
    ...kept,
    ...(deletes !== undefined && { deletes }),
  })
  const shared = { database, ...(schedule !== undefined && { schedule }) }
  if ('execute' in source) worker.sync(id, { ...shared, ...source })
  else worker.track(id, { ...shared, source, ...(backfillSchedule !== undefined && { backfillSchedule }) })
}

type ManifestPath = readonly (string | number)[]

const validateManifest = new Ajv({
  strict: false,
  verbose: true,
  allowUnionTypes: true,
  allErrors: true,
}).compile<ManifestFile>(MANIFEST_SCHEMA)

/** Prefers an unknown field over a missing one: it is usually the missing one, misspelt. */
function pickClearestError(errors: readonly ErrorObject[]): ErrorObject {
  return (
    errors.find(({ keyword }) => keyword === 'additionalProperties') ??
    errors.find(({ keyword }) => keyword !== 'if' && keyword !== 'anyOf') ??
    required(errors[0], 'the validation error')
  )
}

/** The text of a manifest, with the line and column of each value. */
class ManifestDocument {
  readonly #file: string
  readonly #folder: string
  readonly #lines = new LineCounter()
  readonly #document: Document

  constructor(path: string, shownFile: string) {
    this.#file = shownFile
    this.#folder = dirname(path)
    this.#document = parseDocument(readFileSync(path, 'utf8'), { lineCounter: this.#lines, prettyErrors: false })
  }

  check(environment: Environment): ManifestFile {
    const [broken] = this.#document.errors
    if (broken !== undefined) throw this.#errorAt(broken.pos[0], broken.message, 'MANIFEST_INVALID')
    const value: unknown = this.#document.toJS()
    if (!validateManifest(value)) throw this.#toManifestError(pickClearestError(validateManifest.errors ?? []))
    const { streams = [] } = value as Partial<ManifestFile>
    const twice = streams.findIndex(({ id }, index) => streams.findIndex((stream) => stream.id === id) !== index)
    if (twice !== -1)
      throw this.error(
        ['streams', twice, 'id'],
        `the stream id ${describeValue(streams[twice]?.id)} is used twice`,
        'NAME_TAKEN',
      )
    const full = withEnvFile(environment, this.#folder)
    return {
      ...value,
      streams,
      config: this.#resolveSecrets(
        value.config,
        ['config'],
        CONNECTORS[value.connector].config,
        full,
      ) as ManifestFile['config'],
    }
  }

  /** An error with the line and column of the value, or of the nearest enclosing one. */
  error(path: ManifestPath, what: string, code: SyncError['code'] = 'MANIFEST_INVALID'): SyncError {
    for (let length = path.length; length > 0; length--) {
      const node = this.#document.getIn(path.slice(0, length), true) as Node | undefined
      if (node?.range) return this.#errorAt(node.range[0], what, code)
    }
    return this.#errorAt(0, what, code)
  }

  #toManifestError({ instancePath, keyword, message, params, parentSchema, data }: ErrorObject): SyncError {
    const path = instancePath
      .split('/')
      .slice(1)
      .map((part) => (/^\d+$/.test(part) ? Number(part) : part.replaceAll('~1', '/').replaceAll('~0', '~')))
    const where = path.length === 0 ? '' : `${path.join('.')}: `
    if (keyword === 'additionalProperties') {
      const name = String(params['additionalProperty'])
      const known = Object.keys((parentSchema as { properties: object }).properties)
      const map = path.length === 0 ? this.#document.contents : this.#document.getIn(path, true)
      const key = isMap(map) ? map.items.find((pair) => isScalar(pair.key) && pair.key.value === name)?.key : undefined
      const what = `${where}unknown field ${describeValue(name)}.${didYouMean(name, known) || ` The fields are ${known.join(', ')}.`}`
      return isScalar(key) && key.range ? this.#errorAt(key.range[0], what, 'MANIFEST_INVALID') : this.error(path, what)
    }
    // The value is not shown, because it may be a secret. The suggestion is one of the allowed values.
    if (keyword === 'enum') {
      const allowed = (params['allowedValues'] as unknown[]).map(String)
      const suggestion = typeof data === 'string' ? didYouMean(data, allowed) : ''
      return this.error(
        path,
        `${where}it must be one of ${allowed.join(', ')}${suggestion === '' ? '' : `.${suggestion}`}`,
      )
    }
    const problem =
      keyword === 'required'
        ? `\`${String(params['missingProperty'])}\` is missing`
        : keyword === 'const'
          ? `it must be ${JSON.stringify(params['allowedValue'])}`
          : keyword === 'not' || keyword === 'pattern'
            ? `it is ${(parentSchema as { description?: string } | undefined)?.description ?? 'not allowed'}`
            : keyword === 'type' && params['type'] === 'object'
              ? 'it must be an object'
              : (message ?? 'it is not valid')
    return this.error(path, `${where}${problem}`)
  }

  /** A value that is only a secret stays a name and is looked up when needed; within other text it is substituted now. */
  #resolveSecrets(value: unknown, path: ManifestPath, schema: JsonSchema, environment: Environment): unknown {
    if (typeof value === 'string') {
      const isSecret = typeof schema['pattern'] === 'string'
      const name = /^\$\{(\w+)\}$/.exec(value)?.[1]
      if (isSecret && name !== undefined) return name
      return value.replaceAll(/\$\{(\w+)\}/g, (_, variable: string) => {
        const found = environment[variable]
        if (found === undefined || found === '') throw this.error(path, `${variable} is not set`, 'SECRET_MISSING')
        registerNamedSecret(variable, found)
        return found
      })
    }
    if (typeof value !== 'object' || value === null || schema['x-secrets'] === 'late') return value
    if (Array.isArray(value))
      return value.map((item, index) =>
        this.#resolveSecrets(item, [...path, index], (schema['items'] ?? {}) as JsonSchema, environment),
      )
    const properties = (schema['properties'] ?? {}) as Record<string, JsonSchema>
    return Object.fromEntries(
      Object.entries(value).map(([name, field]) => [
        name,
        this.#resolveSecrets(field, [...path, name], properties[name] ?? {}, environment),
      ]),
    )
  }

  #errorAt(offset: number, what: string, code: SyncError['code']): SyncError {
    const { line, col } = this.#lines.linePos(offset)
    return new SyncError(code, `${this.#file}:${line}:${col}: ${what}${/[.?]$/.test(what) ? '' : '.'}`)
  }
}
