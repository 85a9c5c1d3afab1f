import { dirname } from 'node:path'
import { isSyncError, SyncError } from '../../contract/index.ts'
import type { SourceStream } from '../../sources/kit/define-source.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import { omitUndefined } from '../../sources/kit/omit-undefined.ts'
import type { ColumnRules } from '../../transforms/column-rules.ts'
import { Worker } from '../../worker/worker.ts'
import { describeValue } from '../names.ts'
import type { Environment } from '../settings.ts'
import { CONNECTORS } from './connectors.ts'
import { declareDestination } from './create-destination.ts'
import { ManifestDocument } from './manifest-document.ts'
import type { ManifestDestination, ManifestFile, ManifestStream } from './manifest-file.ts'
import { selectStreams } from './select-streams.ts'

/**
 * Creates the worker of a manifest: a database and a sync, or a tracked pair, for every selected stream. `content`
 * replaces the text of the file.
 */
export async function buildWorker(
  path: string,
  shownFile: string,
  environment: Environment = process.env,
  content?: string,
): Promise<Worker> {
  const text = new ManifestDocument(path, shownFile, content)
  const { name, connector, config, select, streams, destinations } = text.resolve(environment)
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
  checkParentStreams(text, streams, selected)
  const forEachStream = (declare: (stream: ManifestStream) => void): void => {
    for (const [index, stream] of streams.entries()) {
      if (!selected.has(stream.id)) continue
      try {
        declare(stream)
      } catch (error) {
        if (!isSyncError(error)) throw error
        throw text.error(['streams', index, ...findRulePath(error)], `${stream.id}: ${error.message}`, error.code)
      }
    }
  }
  // All databases first: a stream may write nested objects to the database of another.
  forEachStream((stream) => declareDatabase(worker, stream, CONNECTORS[connector].selectsFields))
  const declared = new Set(selected)
  forEachStream((stream) => declareStream(worker, stream, opened.stream(stream, streams), declared))
  for (const [index, destination] of destinations.entries()) {
    const given = text.resolveDestination(index, destination, environment)
    try {
      await declareDestination(worker, destination, given, dirname(path))
    } catch (error) {
      if (!isSyncError(error)) throw error
      throw text.error(['destinations', index, ...findPath(worker, destination, error)], error.message, error.code)
    }
  }
  return worker
}

/** A parent may follow its child in the list, so it is looked up last. */
function checkParentStreams(
  text: ManifestDocument,
  streams: readonly ManifestStream[],
  selected: ReadonlySet<string>,
): void {
  for (const [index, { id, after = [] }] of streams.entries()) {
    const unknown = selected.has(id) ? after.findIndex((parent) => !selected.has(parent)) : -1
    if (unknown === -1) continue
    const what = `${id}: \`after\` names ${describeValue(after[unknown])}, which is not a selected stream`
    throw text.error(
      ['streams', index, 'after', unknown],
      `${what}.${didYouMean(String(after[unknown]), selected)}`,
      'SYNC_UNKNOWN',
    )
  }
}

/** Reads and validates a manifest. Secrets stay names. */
export function readManifest(path: string, shownFile: string, environment: Environment = process.env): ManifestFile {
  return new ManifestDocument(path, shownFile).resolve(environment)
}

/** Throws if the text is not a valid manifest. Reads no secret. */
export function checkManifest(text: string, shownFile: string): void {
  new ManifestDocument('.', shownFile, text).check()
}

function declareDatabase(worker: Worker, stream: ManifestStream, selectsFields: boolean): void {
  const { id, schema, schema_changes: schemaChanges, history, deletes } = stream
  const kept =
    history === undefined ? {} : { history: history === false ? (false as const) : { keepDays: history.keep_days } }
  worker.database(id, {
    ...(schema !== undefined && { schema }),
    ...(schemaChanges !== undefined && { schemaChanges }),
    ...kept,
    ...(deletes !== undefined && { deletes }),
    ...readColumnRules(stream, selectsFields),
  })
}

/** `declared` are the databases so far: a stream may write to those of others, and to more of its own. */
function declareStream(
  worker: Worker,
  { id, schedule, backfill_schedule: backfillSchedule, mode, safety_window: safetyWindow, after }: ManifestStream,
  { databases = [], ...source }: SourceStream,
  declared: Set<string>,
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
  for (const name of databases) {
    if (!declared.has(name)) worker.database(name)
    declared.add(name)
  }
  const shared = {
    database: id,
    databases,
    ...(schedule !== undefined && { schedule }),
    ...(after !== undefined && { after }),
  }
  if ('execute' in source) worker.sync(id, { ...shared, ...source })
  else worker.track(id, { ...shared, source, ...(backfillSchedule !== undefined && { backfillSchedule }) })
}

/** `select` is a rule only where the source cannot read less. */
function readColumnRules(
  { select, drop, rename, cast, hash, mask, encrypt }: ManifestStream,
  selectsFields: boolean,
): { columns?: ColumnRules } {
  const columns = omitUndefined({ select: selectsFields ? undefined : select, drop, rename, cast, hash, mask, encrypt })
  return Object.keys(columns).length === 0 ? {} : { columns }
}

/** The rule that an error is about. */
function findRulePath({ code, message }: SyncError): string[] {
  const rule = code === 'COLUMNS_INVALID' ? /: columns\.(\w+): /.exec(message)?.[1] : undefined
  return rule === undefined ? [] : [rule]
}

/** The field of a destination that an error is about. */
function findPath(
  worker: Worker,
  { databases = [] }: ManifestDestination,
  { code, message }: SyncError,
): (string | number)[] {
  if (code === 'SCHEDULE_INVALID') return ['schedule']
  if (code === 'DESTINATION_INVALID' && / children /.test(message)) return ['children']
  const declared = worker.manifest.databases.map(({ name }) => name)
  const unknown = databases.findIndex((database) => !declared.includes(database))
  return code === 'DATABASE_UNKNOWN' && unknown !== -1 ? ['databases', unknown] : []
}
