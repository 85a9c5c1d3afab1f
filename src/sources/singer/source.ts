import { createHash } from 'node:crypto'
import {
  SyncError,
  type Change,
  type Execute,
  type ImportedState,
  type JsonObject,
  type JsonValue,
  type Page,
  type SyncContext,
  type TableShape,
} from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'
import { deriveSchemaColumns } from '../../values/schema-columns.ts'
import {
  selectStreams,
  isCatalog,
  readCatalog,
  listStreams,
  type StreamSelection,
  type DiscoveredStream,
} from './catalog.ts'
import { importTapState } from './import-state.ts'
import { toTapExitError } from './tap-exit-error.ts'
import type { TapLine } from './lines.ts'
import { parseMessage } from './message.ts'
import { toChange, type RecordMapping } from './record.ts'
import { createSchemaCheck, type SchemaCheck } from './schema-check.ts'
import { withoutRange } from '../kit/since.ts'
import { fillSecrets, createRedactor, type TapConfig } from './tap-config.ts'
import { waitUntil, TIMED_OUT, TapProcess, type TapProgram } from './tap-process.ts'

export type { DiscoveredStream } from './catalog.ts'
export type { TapConfig } from './tap-config.ts'

/** Options of `singer`. */
export interface SingerOptions {
  /**
   * The tap: a program in `PATH` or at a path, and its arguments. Never put a secret here: other users can read
   * arguments.
   */
  readonly command: string | readonly string[]
  /** The tap's configuration. A value of exactly `${NAME}` is replaced by the secret of that name. */
  readonly config?: TapConfig
  /** The tap's catalog. Requested at the start of every cycle by default; `none` for a tap without one. */
  readonly catalog?: JsonObject | 'none'
  /** The option for the catalog; older taps use `--properties`. */
  readonly catalogFlag?: '--catalog' | '--properties'
  /** Environment variables besides `PATH`, `HOME` and the locale; `${NAME}` is replaced by a secret here too. */
  readonly environment?: Readonly<Record<string, string>>
  /** Working directory; that of this process by default. */
  readonly folder?: string | URL
  /**
   * A page ends with the first STATE after this many records; 1,000 by default. Without a STATE, a page ends at ten
   * times as many.
   */
  readonly pageSize?: number
  /** A tap that writes nothing for this long is considered hung; 15 minutes by default. */
  readonly quietMaxMs?: number
}

/** Options of one stream of a tap. */
export interface TapStreamOptions extends StreamSelection {
  /** Fields that identify a record; the tap's key properties by default. `hash` derives a key from the whole record. */
  readonly key?: readonly string[] | 'hash'
  /** The field with the time of the last change: an older version then never overwrites a newer one. */
  readonly updatedAt?: string
}

/** The streams of a Singer tap. */
export interface SingerSource {
  /** Follows a stream from the tap's last state: `worker.sync('issues', { database, ...github.stream('issues') })`. */
  stream(
    name: string,
    options?: TapStreamOptions,
  ): { readonly mode: 'incremental'; readonly execute: Execute<SingerState> }
  /** Reads everything each time and sweeps missing rows. */
  listing(
    name: string,
    options?: Omit<TapStreamOptions, 'cursor' | 'method'>,
  ): { readonly mode: 'replace'; readonly execute: Execute<SingerState> }
  /**
   * Reads several streams in one run of the tap, each into a database of the sync; for taps that read one stream
   * through another.
   */
  streams(databases: Readonly<Record<string, string | (TapStreamOptions & { readonly database: string })>>): {
    readonly mode: 'incremental'
    readonly execute: Execute<SingerState>
  }
}

/** The tap's state. Between two pages also the run and the page, so that the run can continue. */
export interface SingerState {
  /** The tap's last STATE; as text if it has an integer beyond JavaScript's precision. */
  readonly tap?: JsonValue
  /** The version of each versioned stream. */
  readonly versions?: Readonly<Record<string, string>>
  readonly run?: string
  readonly page?: number
}

const PAGE_SIZE = 1_000
/** Number of page sizes without a STATE after which a page ends anyway. */
const PAGES_WITHOUT_STATE_MAX = 10
const PAGE_BYTES = 32_000_000
/** Records received within this time are committed. */
const PAGE_MS = 10_000
const QUIET_MAX_MS = 900_000
const RANGE_UNSUPPORTED = 'a tap has no setting for the end of its records'
/** A program that writes more invalid lines than this is not a tap. */
const INVALID_LINES_MAX = 100

/**
 * Runs any tap of the Singer protocol, once per cycle. Backpressure on its output paces it to our commits:
 *
 *   start (catalog, state) ──▶ SCHEMA, RECORD … STATE, RECORD … STATE ──▶ exit 0: the cycle is complete
 *                               └─ page ──────────┘                  └──▶ exit ≠ 0: committed pages stay, with their state
 *
 * A STATE covers the records before it, and is stored with the page that contains it. A page without one keeps the
 * previous state: a run from there repeats its records, and committing them again is idempotent.
 */
export function singer(options: SingerOptions): SingerSource {
  const { command, environment = {}, catalog } = options
  if (command.length === 0 || command[0] === '')
    throw new SyncError('SYNC_INVALID', 'singer: `command` is empty. Set the program of the tap.')
  if (catalog !== undefined && catalog !== 'none' && !isCatalog(catalog))
    throw new SyncError('SYNC_INVALID', '`catalog` is invalid: it has no list `streams`.')
  const program = { command: [command].flat(), environment, folder: options.folder }
  return {
    stream: (name, selection = {}) => ({
      mode: 'incremental',
      execute: withStateImport([name], createExecute(program, options, new Map([[name, selection]]))),
    }),
    listing: (name, selection = {}) => ({
      mode: 'replace',
      execute: withoutRange(createExecute(program, options, new Map([[name, selection]])), RANGE_UNSUPPORTED),
    }),
    streams: (databases) => ({
      mode: 'incremental',
      execute: withStateImport(
        Object.keys(databases),
        createExecute(
          program,
          options,
          new Map(
            Object.entries(databases).map(([name, target]) => [
              name,
              typeof target === 'string' ? { database: target } : target,
            ]),
          ),
        ),
      ),
    }),
  }
}

function withStateImport(streams: readonly string[], execute: Execute<SingerState>): Execute<SingerState> {
  const importState = {
    singer: (document: JsonValue, stream?: string): ImportedState<SingerState> => ({
      state: { tap: toPlainJson(importTapState(document, streams, stream)) },
    }),
  }
  return Object.assign(execute, { importState, rangeUnsupported: RANGE_UNSUPPORTED })
}

/** Lists the streams that the tap offers. */
export async function discover(
  options: SingerOptions,
  context: Pick<SyncContext, 'clock' | 'log' | 'signal' | 'secrets'>,
): Promise<DiscoveredStream[]> {
  const { command, config = {}, environment = {}, folder } = options
  const { secrets } = context
  return listStreams(
    await readCatalog(
      { command: [command].flat(), environment: fillSecrets(environment, secrets) as Record<string, string>, folder },
      stringifyJson(fillSecrets(config, secrets)),
      createRedactor(() => undefined),
      context,
    ),
  )
}

type StreamTarget = TapStreamOptions & { readonly database?: string }

function createExecute(
  program: TapProgram,
  options: SingerOptions,
  targets: ReadonlyMap<string, StreamTarget>,
): Execute<SingerState> {
  /** Keyed by a random id: one worker may run for many tenants at once. */
  const runs = new Map<string, TapRun>()
  // Identifies the request: the answer to another request may lack records that still exist.
  const scope = createHash('sha256')
    .update(JSON.stringify([program.command, options.config, [...targets]]))
    .digest('hex')
    .slice(0, 16)
  return async (state, context) => {
    checkState(state)
    let run = state?.run === undefined ? undefined : runs.get(state.run)
    if (run === undefined || run.lastPage !== state?.page) {
      run?.stop()
      const id = `${context.cycle.id}-${Math.floor(context.random.next() * 2 ** 48).toString(36)}`
      const newRun: TapRun = (run = new TapRun(id, program, options, targets, state, context, () =>
        runs.delete(newRun.id),
      ))
      runs.set(id, newRun)
    }
    const current = run
    // Also aborts at the end of the cycle, or when this page is no longer needed.
    context.signal.addEventListener('abort', () => current.stop(), { once: true })
    try {
      context.signal.throwIfAborted()
      const page = await current.read(context)
      if (!page.hasMore) current.stop()
      return { ...page, scope }
    } catch (error) {
      current.stop()
      throw error
    }
  }
}

// ── a run ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One run of the tap, read page by page. */
class TapRun {
  readonly id: string
  /** The last page returned; null while a page is being read, so that no other request resumes from it. */
  lastPage: number | null = null
  readonly #name: string
  readonly #options: SingerOptions
  readonly #targets: ReadonlyMap<string, StreamTarget>
  readonly #isListing: boolean
  readonly #opening: Promise<TapProcess>
  readonly #onStop: () => void
  #names: ReadonlyMap<string, string>
  readonly #shapes = new Map<string, { shape: RecordMapping; check: SchemaCheck; table: TableShape } | null>()
  #tap: JsonValue | undefined
  #versions: Record<string, string>
  #lines: readonly TapLine[] = []
  #lineIndex = 0
  #ended = false
  /**
   * A last line without a newline: discarded if the tap fails, because it is repeated; processed if the tap succeeds.
   */
  #unterminatedLine: TapLine | null = null
  #invalidLines = 0
  #failure: SyncError | null = null
  #stopped = false

  constructor(
    id: string,
    program: TapProgram,
    options: SingerOptions,
    targets: ReadonlyMap<string, StreamTarget>,
    state: SingerState | undefined,
    context: SyncContext,
    onStop: () => void,
  ) {
    this.id = id
    this.#name = program.command[0] ?? ''
    this.#options = options
    this.#targets = targets
    this.#isListing = context.cycle.mode === 'replace'
    this.#tap = state?.tap
    this.#versions = { ...state?.versions }
    this.#names = new Map([...targets.keys()].map((name) => [name, name]))
    this.#onStop = onStop
    this.#opening = this.#open(program, context)
    this.#opening.catch(() => {})
  }

  async #open({ command, environment, folder }: TapProgram, context: SyncContext): Promise<TapProcess> {
    const { config = {}, catalog, catalogFlag = '--catalog' } = this.#options
    const { secrets } = context
    const program = { command, environment: fillSecrets(environment, secrets) as Record<string, string>, folder }
    const redact = createRedactor(() => this.#tap)
    const text = stringifyJson(fillSecrets(config, secrets))
    let selectedCatalog: string | undefined
    if (catalog !== 'none') {
      const found = selectStreams(
        catalog === undefined ? await readCatalog(program, text, redact, context) : (catalog as never),
        this.#targets,
        context.cycle.mode,
        this.#name,
      )
      this.#names = found.names
      selectedCatalog = stringifyJson(found.catalog as never)
    }
    return TapProcess.start(
      program,
      {
        config: text,
        state:
          this.#tap === undefined ? undefined : typeof this.#tap === 'string' ? this.#tap : stringifyJson(this.#tap),
        catalog: selectedCatalog === undefined ? undefined : { flag: catalogFlag, text: selectedCatalog },
      },
      redact,
      context,
    )
  }

  async read(context: SyncContext): Promise<Page<SingerState>> {
    this.lastPage = null
    if (this.#failure !== null) throw this.#failure
    const { clock, signal } = context
    const { pageSize = PAGE_SIZE, quietMaxMs = QUIET_MAX_MS } = this.#options
    const until = clock.now() + Math.min(PAGE_MS, quietMaxMs)
    const changes: Change[] = []
    let bytes = 0
    const tap = await waitUntil(this.#opening, until, signal, context)
    // Listing its streams may take the tap a long time.
    if (tap === TIMED_OUT) return this.#continuePage(changes, context)
    for (;;) {
      for (let line = this.#lines[this.#lineIndex]; line !== undefined; line = this.#lines[this.#lineIndex]) {
        this.#lineIndex++
        if (line.isUnterminated) {
          this.#unterminatedLine = line
          continue
        }
        const isState = this.#handleLine(line, changes, context)
        bytes += line.text?.length ?? 0
        if (isState && changes.length >= pageSize) return this.#continuePage(changes, context)
        if (changes.length >= pageSize * PAGES_WITHOUT_STATE_MAX || bytes >= PAGE_BYTES)
          return this.#continuePage(changes, context)
      }
      if (!this.#ended) {
        const lines = await tap.readLines(until, signal)
        this.#ended = lines === null
        this.#lines = lines ?? []
        this.#lineIndex = 0
      }
      const code = this.#ended ? await tap.waitForExit(until, signal) : null
      if (code === 0) {
        if (this.#unterminatedLine !== null) this.#handleLine(this.#unterminatedLine, changes, context)
        return { changes, hasMore: false, nextState: this.#buildState(), tables: this.#buildTables() }
      }
      if (code !== null) return this.#fail(toTapExitError(this.#name, code, tap.lastStderrLine), changes, context)
      if (clock.now() < until) continue
      if (clock.now() - tap.lastOutputAt < quietMaxMs) return this.#continuePage(changes, context)
      return this.#fail(
        new SyncError(
          'SOURCE_TIMEOUT',
          `${this.#name} wrote nothing for ${Math.round(quietMaxMs / 1_000)} seconds. Raise \`quietMaxMs\` if that is normal.`,
        ),
        changes,
        context,
      )
    }
  }

  /** Changes received before the failure are committed first, with their state. */
  #fail(failure: SyncError, changes: Change[], context: SyncContext): Page<SingerState> {
    this.#failure = failure
    if (changes.length === 0) throw failure
    return this.#continuePage(changes, context)
  }

  stop(): void {
    if (this.#stopped) return
    this.#stopped = true
    this.lastPage = null
    this.#onStop()
    void this.#opening.then((tap) => tap.stop()).catch(() => {})
  }

  #continuePage(changes: Change[], { cycle }: SyncContext): Page<SingerState> {
    this.lastPage = cycle.page
    return {
      changes,
      hasMore: true,
      nextState: { ...this.#buildState(), run: this.id, page: cycle.page },
      tables: this.#buildTables(),
    }
  }

  /**
   * The column types of the tap's schemas. If several streams share a database, its columns are inferred from the
   * values.
   */
  #buildTables(): TableShape[] {
    const tables = [...this.#shapes.values()].flatMap((known) => (known === null ? [] : [known.table]))
    return tables.filter(({ database }) => tables.filter((other) => other.database === database).length === 1)
  }

  #buildState(): SingerState {
    return {
      // An interrupted listing starts over: a sweep must not depend on a tap's own state.
      ...(this.#tap !== undefined && !this.#isListing && { tap: toPlainJson(this.#tap) }),
      ...(Object.keys(this.#versions).length > 0 && { versions: { ...this.#versions } }),
    }
  }

  /** Returns whether the line was a STATE. */
  #handleLine({ text }: TapLine, changes: Change[], context: SyncContext): boolean {
    const message = text === null ? null : parseMessage(text)
    switch (message?.type) {
      case undefined:
        changes.push(this.#toInvalidChange(text))
        return false
      case 'STATE':
        this.#tap = message.value
        return true
      case 'BATCH':
        throw new SyncError(
          'CONNECTOR_FAILED',
          `${this.#name} sends BATCH messages for "${message.stream}", which are not supported. Remove \`batch_config\` from its config.`,
        )
      case 'SCHEMA': {
        const target = this.#getTarget(message.stream)
        const { key = message.key, updatedAt, database, cursor } = target ?? {}
        if (target !== undefined && key.length === 0)
          throw new SyncError(
            'SYNC_INVALID',
            `${this.#name} declares no key for "${message.stream}". Set \`key\` to the fields that identify a record, or to \`hash\` to use the whole record.`,
          )
        const table = {
          ...(database !== undefined && { database }),
          columns: deriveSchemaColumns(message.schema),
          ...(key !== 'hash' && { key }),
        }
        const check = createSchemaCheck(message.stream, message.schema, context.log)
        this.#shapes.set(
          message.stream,
          target === undefined
            ? null
            : { shape: { key, cursor: cursor ?? message.cursor, updatedAt, database }, check, table },
        )
        return false
      }
      case 'RECORD': {
        const known = this.#shapes.get(message.stream)
        if (known === undefined)
          throw new SyncError(
            'CONNECTOR_FAILED',
            `${this.#name} sent a record of "${message.stream}" before its schema.`,
          )
        // A stream that was not selected.
        if (known === null) return false
        known.check(message.record, text ?? '')
        changes.push(toChange(message.record, known.shape))
        return false
      }
      case 'ACTIVATE_VERSION':
        this.#recordVersion(message.stream, String(message.version), context)
        return false
      default:
        return message satisfies never
    }
  }

  #getTarget(stream: string): StreamTarget | undefined {
    return this.#targets.get(this.#names.get(stream) ?? stream)
  }

  /**
   * A new version means that missing records are deleted. A listing sweeps them at its end; elsewhere they are unknown.
   */
  #recordVersion(stream: string, version: string, { log }: SyncContext): void {
    const previous = this.#versions[stream]
    if (this.#isListing || this.#getTarget(stream) === undefined || previous === version) return
    this.#versions[stream] = version
    if (previous !== undefined)
      log.warn(
        'the tap started a new version of a stream; records missing from it stay until it is read as a listing',
        { stream },
      )
  }

  /**
   * Quarantines an invalid line with the reason. In a listing it could be any record, which the sweep would then
   * delete.
   */
  #toInvalidChange(text: string | null): Change {
    const what = text === null ? 'a line that exceeds the size limit' : 'a line that is not a Singer message'
    if (this.#isListing)
      throw new SyncError(
        'CONNECTOR_FAILED',
        `${this.#name} wrote ${what}; it may have been any record, so nothing was swept.`,
      )
    if (++this.#invalidLines > INVALID_LINES_MAX)
      throw new SyncError(
        'CONNECTOR_FAILED',
        `${this.#name} wrote more than ${INVALID_LINES_MAX} lines that are not Singer messages. Check that \`command\` is a tap.`,
      )
    const [{ database } = {}] = this.#targets.values()
    return {
      type: 'invalid',
      key: null,
      reason: `${this.#name} wrote ${what}`,
      raw: text === null ? null : text.slice(0, LINE_EXCERPT_LENGTH),
      ...(database !== undefined && { database }),
    }
  }
}

const LINE_EXCERPT_LENGTH = 4_000

function checkState(state: SingerState | undefined): void {
  if (state === undefined) return
  const { versions = {} } = state
  if (typeof state !== 'object' || state === null || typeof versions !== 'object' || versions === null) {
    throw new SyncError(
      'CURSOR_REJECTED',
      'The stored state does not belong to this source: it must have the tap state in `tap`.',
    )
  }
}

/** A state is plain JSON; an integer beyond double precision is kept as text. */
function toPlainJson(value: JsonValue): JsonValue {
  try {
    JSON.stringify(value)
    return value
  } catch {
    return stringifyJson(value)
  }
}
