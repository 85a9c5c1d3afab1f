import { createHash } from 'node:crypto'
import { SyncError, type Change, type Execute, type JsonObject, type JsonValue, type Page, type SyncContext, type TableShape } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'
import { deriveSchemaColumns } from '../../values/schema-columns.ts'
import { selectStreams, isCatalog, readCatalog, listStreams, type StreamSelection, type DiscoveredStream } from './catalog.ts'
import { toTapExitError } from './tap-exit-error.ts'
import type { TapLine } from './lines.ts'
import { parseMessage } from './message.ts'
import { toChange, type RecordMapping } from './record.ts'
import { createSchemaCheck, type SchemaCheck } from './schema-check.ts'
import { fillSecrets, createRedactor, type TapConfig } from './tap-config.ts'
import { waitUntil, TIMED_OUT, TapProcess, type TapProgram } from './tap-process.ts'

export type { DiscoveredStream } from './catalog.ts'
export type { TapConfig } from './tap-config.ts'

export interface SingerOptions {
  /** The tap: a program in `PATH` or at a path, and arguments of its own. Never a secret: others can read arguments. */
  readonly command: string | readonly string[]
  /** What it is configured with. `${NAME}` and nothing else stands for the secret of that name. */
  readonly config?: TapConfig
  /** Its catalog. Asked for at the beginning of every cycle unless given; `none` for a tap that has no such thing. */
  readonly catalog?: JsonObject | 'none'
  /** How it takes the catalog; older ones with `--properties`. */
  readonly catalogFlag?: '--catalog' | '--properties'
  /** What it sees of the environment besides `PATH`, `HOME` and the language; `${NAME}` stands for a secret here too. */
  readonly environment?: Readonly<Record<string, string>>
  /** Where it runs; the folder of this process unless given. */
  readonly folder?: string | URL
  /** A page ends with the first STATE after so many records; 1,000 unless given. A run without any is divided at ten times as many. */
  readonly pageSize?: number
  /** A tap that writes nothing for so long has hung; a quarter of an hour unless given. */
  readonly quietMaxMs?: number
}

export interface TapStreamOptions extends StreamSelection {
  /** What tells records apart; what the tap says unless given. `hash` makes a key of the whole record. */
  readonly key?: readonly string[] | 'hash'
  /** The member that says when a record was last changed: then an older fact never overwrites a newer one. */
  readonly updatedAt?: string
}

export interface SingerSource {
  /** As the tap follows it, from the state it left: `worker.sync('issues', { database, ...github.stream('issues') })`. */
  stream(name: string, options?: TapStreamOptions): { readonly mode: 'incremental'; readonly execute: Execute<SingerState> }
  /** All of it each time; what is no longer there is swept. */
  listing(name: string, options?: Omit<TapStreamOptions, 'cursor' | 'method'>): { readonly mode: 'replace'; readonly execute: Execute<SingerState> }
  /** Several with one run of the tap, each into a database of the sync; for taps that read one stream by way of another. */
  streams(databases: Readonly<Record<string, string | (TapStreamOptions & { readonly database: string })>>): { readonly mode: 'incremental'; readonly execute: Execute<SingerState> }
}

/** Where the tap stands. Between two pages also which run it was and which page, so that the run can go on. */
export interface SingerState {
  /** What the tap said last; as text when it holds an integer that JavaScript has no number for. */
  readonly tap?: JsonValue
  /** The version of each stream that has such. */
  readonly versions?: Readonly<Record<string, string>>
  readonly run?: string
  readonly page?: number
}

const PAGE_SIZE = 1_000
/** How many pages may pass without a STATE before one ends without. */
const PAGES_WITHOUT_STATE_MAX = 10
const PAGE_BYTES = 32_000_000
/** What has come by then is landed. */
const PAGE_MS = 10_000
const QUIET_MAX_MS = 900_000
/** So much that is no message is not from a tap. */
const INVALID_LINES_MAX = 100

/**
 * Any tap of the Singer protocol. It runs once for a cycle and writes to us as fast as its pages land:
 *
 *   start (catalog, state) ──▶ SCHEMA, RECORD … STATE, RECORD … STATE ──▶ exit 0: the cycle is complete
 *                               └─ page ──────────┘                  └──▶ exit ≠ 0: what has landed stays, with its state
 *
 * A STATE covers the records before it, and is kept with the page that ends with it or after it. A page that ends without
 * one leaves the state where it was: a run that begins there tells its records again, and landing them changes nothing.
 */
export function singer(options: SingerOptions): SingerSource {
  const { command, environment = {}, catalog } = options
  if (command.length === 0 || command[0] === '') throw new SyncError('SYNC_INVALID', 'singer needs the `command` of a tap.')
  if (catalog !== undefined && catalog !== 'none' && !isCatalog(catalog)) throw new SyncError('SYNC_INVALID', '`catalog` is not one: it has no list `streams`.')
  const program = { command: [command].flat(), environment, folder: options.folder }
  return {
    stream: (name, chosen = {}) => ({ mode: 'incremental', execute: createExecute(program, options, new Map([[name, chosen]])) }),
    listing: (name, chosen = {}) => ({ mode: 'replace', execute: createExecute(program, options, new Map([[name, chosen]])) }),
    streams: (databases) => ({
      mode: 'incremental',
      execute: createExecute(program, options, new Map(Object.entries(databases).map(([name, target]) => [name, typeof target === 'string' ? { database: target } : target]))),
    }),
  }
}

/** What the tap offers. */
export async function discover(options: SingerOptions, context: Pick<SyncContext, 'clock' | 'log' | 'signal' | 'secrets'>): Promise<DiscoveredStream[]> {
  const { command, config = {}, environment = {}, folder } = options
  const { secrets } = context
  return listStreams(await readCatalog({ command: [command].flat(), environment: fillSecrets(environment, secrets) as Record<string, string>, folder }, stringifyJson(fillSecrets(config, secrets)), createRedactor(() => undefined), context))
}

type StreamTarget = TapStreamOptions & { readonly database?: string }

function createExecute(program: TapProgram, options: SingerOptions, targets: ReadonlyMap<string, StreamTarget>): Execute<SingerState> {
  /** By a name that no other has: one worker may run for many tenants at once. */
  const runs = new Map<string, TapRun>()
  // What is asked for; another answer to that may lack what was there, without its being gone.
  const scope = createHash('sha256').update(JSON.stringify([program.command, options.config, [...targets]])).digest('hex').slice(0, 16)
  return async (state, context) => {
    checkState(state)
    let run = state?.run === undefined ? undefined : runs.get(state.run)
    if (run === undefined || run.lastPage !== state!.page) {
      run?.stop()
      const id = `${context.cycle.id}-${Math.floor(context.random.next() * 2 ** 48).toString(36)}`
      const begun: TapRun = (run = new TapRun(id, program, options, targets, state, context, () => runs.delete(begun.id)))
      runs.set(id, begun)
    }
    const current = run
    // Also when the cycle is over, or this page is no longer wanted.
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
  /** The page it has given last. Until one is done nobody can go on from it. */
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
  /** What nothing ended: of a tap that broke off it is told again, of one that says that all is well it counts. */
  #unterminatedLine: TapLine | null = null
  #invalidLines = 0
  #failure: SyncError | null = null
  #stopped = false

  constructor(id: string, program: TapProgram, options: SingerOptions, targets: ReadonlyMap<string, StreamTarget>, state: SingerState | undefined, context: SyncContext, onStop: () => void) {
    this.id = id
    this.#name = program.command[0]!
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
    let chosen: string | undefined
    if (catalog !== 'none') {
      const found = selectStreams(catalog === undefined ? await readCatalog(program, text, redact, context) : (catalog as never), this.#targets, context.cycle.mode, this.#name)
      this.#names = found.names
      chosen = stringifyJson(found.catalog as never)
    }
    return TapProcess.start(program, {
      config: text,
      state: this.#tap === undefined ? undefined : typeof this.#tap === 'string' ? this.#tap : stringifyJson(this.#tap),
      catalog: chosen === undefined ? undefined : { flag: catalogFlag, text: chosen },
    }, redact, context)
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
    // It may take its time to list what there is.
    if (tap === TIMED_OUT) return this.#continuePage(changes, context)
    for (;;) {
      while (this.#lineIndex < this.#lines.length) {
        const line = this.#lines[this.#lineIndex++]!
        if (line.isUnterminated) {
          this.#unterminatedLine = line
          continue
        }
        const isState = this.#handleLine(line, changes, context)
        bytes += line.text?.length ?? 0
        if (isState && changes.length >= pageSize) return this.#continuePage(changes, context)
        if (changes.length >= pageSize * PAGES_WITHOUT_STATE_MAX || bytes >= PAGE_BYTES) return this.#continuePage(changes, context)
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
      return this.#fail(new SyncError('SOURCE_TIMEOUT', `${this.#name} wrote nothing for ${Math.round(quietMaxMs / 1_000)} seconds.`), changes, context)
    }
  }

  /** What it told before is landed first, with its state. */
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
    return { changes, hasMore: true, nextState: { ...this.#buildState(), run: this.id, page: cycle.page }, tables: this.#buildTables() }
  }

  /** By the schemas that the tap has sent. Where several streams share a database, its columns follow the values. */
  #buildTables(): TableShape[] {
    const tables = [...this.#shapes.values()].flatMap((known) => (known === null ? [] : [known.table]))
    return tables.filter(({ database }) => tables.filter((other) => other.database === database).length === 1)
  }

  #buildState(): SingerState {
    return {
      // A listing that was interrupted begins anew: what a sweep may delete does not hang on where a tap says that it stood.
      ...(this.#tap !== undefined && !this.#isListing && { tap: toPlainJson(this.#tap) }),
      ...(Object.keys(this.#versions).length > 0 && { versions: { ...this.#versions } }),
    }
  }

  /** Whether it was a STATE. */
  #handleLine({ text }: TapLine, changes: Change[], context: SyncContext): boolean {
    const message = text === null ? null : parseMessage(text)
    switch (message?.type) {
      case undefined:
        changes.push(this.#toFaultChange(text))
        return false
      case 'STATE':
        this.#tap = message.value
        return true
      case 'BATCH':
        throw new SyncError('CONNECTOR_FAILED', `${this.#name} sends batches of "${message.stream}": names of files instead of records. Take \`batch_config\` out of its config.`)
      case 'SCHEMA': {
        const target = this.#getTarget(message.stream)
        const { key = message.key, updatedAt, database, cursor } = target ?? {}
        if (target !== undefined && key.length === 0) throw new SyncError('SYNC_INVALID', `${this.#name} names no key of "${message.stream}": say with \`key\` which members tell its records apart, or \`hash\` to take all of a record for its key.`)
        const table = { ...(database !== undefined && { database }), columns: deriveSchemaColumns(message.schema), ...(key !== 'hash' && { key }) }
        const check = createSchemaCheck(message.stream, message.schema, context.log)
        this.#shapes.set(message.stream, target === undefined ? null : { shape: { key, cursor: cursor ?? message.cursor, updatedAt, database }, check, table })
        return false
      }
      case 'RECORD': {
        const known = this.#shapes.get(message.stream)
        if (known === undefined) throw new SyncError('CONNECTOR_FAILED', `${this.#name} sends a record of "${message.stream}" before its schema.`)
        // Of a stream that nobody asked for.
        if (known === null) return false
        known.check(message.record, text!)
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

  /** A listing is swept at its end, which is what a new version means. Elsewhere nobody knows what the old one had more. */
  #recordVersion(stream: string, version: string, { log }: SyncContext): void {
    const before = this.#versions[stream]
    if (this.#isListing || this.#getTarget(stream) === undefined || before === version) return
    this.#versions[stream] = version
    if (before !== undefined) log.warn('the tap began to tell a stream anew; what is gone from it stays until it is read as a listing', { stream })
  }

  /** What cannot be read is set apart with the reason. In a listing it may be any record, and the sweep would take that for gone. */
  #toFaultChange(text: string | null): Change {
    const what = text === null ? 'a line that is too long to be a message' : 'a line that is no message'
    if (this.#isListing) throw new SyncError('CONNECTOR_FAILED', `${this.#name} wrote ${what}; which record is missing cannot be told, and nothing was swept.`)
    if (++this.#invalidLines > INVALID_LINES_MAX) throw new SyncError('CONNECTOR_FAILED', `${this.#name} wrote more than ${INVALID_LINES_MAX} lines that are no messages.`)
    const record = Object.assign(new Error(`${this.#name} wrote ${what}`), text !== null && { line: text.slice(0, LINE_EXCERPT_LENGTH) })
    const [{ database } = {}] = this.#targets.values()
    return { type: 'upsert', key: `line:${createHash('sha256').update(text ?? '').digest('hex').slice(0, 16)}`, record: record as unknown as JsonObject, ...(database !== undefined && { database }) }
  }
}

const LINE_EXCERPT_LENGTH = 4_000

function checkState(state: SingerState | undefined): void {
  if (state === undefined) return
  const { versions = {} } = state
  if (typeof state !== 'object' || state === null || typeof versions !== 'object' || versions === null) {
    throw new SyncError('CURSOR_REJECTED', 'The stored state is not one of this source: it holds what the tap said last in `tap`.')
  }
}

/** A state is plain JSON; an integer beyond that is kept in the text it came as. */
function toPlainJson(value: JsonValue): JsonValue {
  try {
    JSON.stringify(value)
    return value
  } catch {
    return stringifyJson(value)
  }
}
