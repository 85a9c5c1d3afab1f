import type { KeyRange, Random, Row, VerificationGap, VerificationMethod } from '../contract/index.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import { required } from '../values/required.ts'
import { bisect, countMinimum } from './bisect.ts'
import type { CopyBlock, CopyReader } from './copy-reader.ts'
import { KeySet } from './key-set.ts'
import { BudgetError } from './request-budget.ts'
import { matchRow, type Candidate } from './settle-differences.ts'
import type { SourceReader, SourceRecord } from './source-reader.ts'
import type { VerifiedSource } from './verification-plan.ts'

/** The rows to compare: everything by the strongest means, everything by its records, a sample, or a range of times. */
export type VerificationScope =
  | { readonly kind: 'auto' }
  | { readonly kind: 'full' }
  | { readonly kind: 'sample'; readonly rows: number }
  | { readonly kind: 'since'; readonly time: string }

export interface ComparedSource {
  readonly source: VerifiedSource
  readonly reader: SourceReader
}

export interface ComparisonOptions {
  readonly copy: CopyReader
  readonly sources: readonly ComparedSource[]
  readonly scope: VerificationScope
  readonly ignore: readonly string[]
  /** The database has column rules, so that its records differ from those of the source. */
  readonly hasColumnRules: boolean
  readonly now: () => number
  readonly random: Random
  readonly blockRows?: number
  /** Reports the number of compared rows. */
  readonly onProgress?: (rows: number) => void
}

/** The first look: rows that may differ. */
export interface Comparison {
  readonly method: VerificationMethod
  readonly candidates: ReadonlyMap<ComparedSource, readonly Candidate[]>
  readonly rows: number
  readonly ignored: number
  readonly gap: VerificationGap | null
  /** For `digests`: the fewest questions that find the differing blocks, with those that read them. */
  readonly requestsMin: number | null
}

/** More of them need a backfill, not a repair. */
const CANDIDATES_MAX = 20_000

/** Rows of a block of digests, which is read as a whole if it differs. */
const BLOCK_ROWS = 1_000

/** The ranges of the first step. A source scans what it summarizes, so halving from the start would scan it often. */
const FIRST_RANGES = 256

/** Compares once, by the strongest means that every source of the database has. */
export async function compareDatabase(options: ComparisonOptions): Promise<Comparison> {
  const run = new ComparisonRun(options)
  try {
    return run.finish(await compare(run, options))
  } catch (error) {
    if (error instanceof BudgetError) return run.finish('budget')
    if (error instanceof LimitError) return run.finish('limit')
    throw error
  }
}

async function compare(
  run: ComparisonRun,
  { scope, sources, hasColumnRules }: ComparisonOptions,
): Promise<VerificationGap | null> {
  const [only] = sources
  if (scope.kind === 'since') return await compareRange(run, scope.time)
  if (scope.kind === 'sample') return await compareSample(run, scope.rows)
  if (scope.kind === 'auto' && only !== undefined && sources.length === 1) {
    const { summarize, read, listKeys } = only.source.checks
    if (!hasColumnRules && summarize !== undefined && read !== undefined) {
      const gap = await compareDigests(run, only)
      if (gap !== 'unsupported') return gap
    }
    if (listKeys !== undefined) return await compareKeys(run, only)
  }
  if (sources.every(({ source }) => source.listing !== null)) return await compareListing(run)
  return await compareSample(run, SAMPLE_ROWS)
}

/** Rows to look up if the source cannot list its records. */
const SAMPLE_ROWS = 1_000

/** Digests of blocks; the records of the blocks that differ. */
async function compareDigests(
  run: ComparisonRun,
  compared: ComparedSource,
): Promise<VerificationGap | null | 'unsupported'> {
  const { copy, ignore, blockRows = BLOCK_ROWS } = run.options
  const { reader } = compared
  const first = await reader.summarize([], ignore)
  if (first === null || first.fields.length === 0) return 'unsupported'
  run.method = 'digests'
  const blocks = await copy.summarize(first.fields, blockRows)
  run.addRows(blocks.reduce((sum, { count }) => sum + count, 0))
  const search = bisect(blocks, FIRST_RANGES)
  let step = search.next()
  while (!step.done) {
    const ranges = step.value.map(({ first: from, end }) => toKeyRange(blocks, from, end))
    const answer = required(await reader.summarize(ranges, ignore), 'summaries')
    step = search.next(answer.ranges)
  }
  const differing = step.value
  run.requestsMin = countMinimum(blocks.length, differing.length) + differing.length
  for (const at of differing) await compareKeyRange(run, compared, toKeyRange(blocks, at, at + 1))
  return first.isPartial === true ? 'fields' : null
}

function toKeyRange(blocks: readonly CopyBlock[], first: number, end: number): KeyRange {
  return {
    after: first === 0 ? null : required(blocks[first - 1], 'block before the range').upTo,
    upTo: required(blocks[end - 1], 'last block of the range').upTo,
  }
}

async function compareKeyRange(run: ComparisonRun, compared: ComparedSource, range: KeyRange): Promise<void> {
  const seen = new Set<string>()
  for await (const records of compared.reader.read(range)) {
    for (const { key } of records) seen.add(key)
    await run.comparePage(compared, records)
  }
  for await (const row of run.options.copy.rows(range)) if (!seen.has(row.key)) run.addExtra(compared, row)
}

/** Keys and times; the records of those that differ. */
async function compareKeys(run: ComparisonRun, compared: ComparedSource): Promise<VerificationGap | null> {
  run.method = 'keys'
  const { copy } = run.options
  const seen = new KeySet()
  for await (const listed of compared.reader.listKeys()) {
    run.addRows(listed.length)
    const rows = await copy.find(listed.map(({ key }) => key))
    const differing = listed.filter(({ key, upstreamUpdatedAt }) => {
      seen.add(key)
      const row = rows.get(key)
      if (row === undefined) return true
      const time = upstreamUpdatedAt === undefined ? null : canonicalizeInstant(upstreamUpdatedAt)
      return time !== null && time !== row.upstreamAt
    })
    if (differing.length === 0) continue
    const keys = differing.map(({ key }) => key)
    const { records } = await compared.reader.find(keys)
    for (const key of keys) run.compareRow(compared, records.get(key) ?? null, rows.get(key) ?? null)
  }
  for await (const row of copy.rows(ALL_KEYS)) if (!seen.has(row.key)) run.addExtra(compared, row)
  // A record without a time may have changed, and its key does not show it.
  return 'fields'
}

const ALL_KEYS: KeyRange = { after: null, upTo: null }

/** Every record of every source. */
async function compareListing(run: ComparisonRun): Promise<VerificationGap | null> {
  run.method = 'listing'
  const { copy, sources } = run.options
  const seen = new KeySet()
  for (const compared of sources) {
    for await (const records of compared.reader.list()) {
      run.addRows(records.length)
      for (const { key } of records) seen.add(key)
      await run.comparePage(compared, records)
    }
  }
  const [first] = sources
  // A row that no source listed would need a second look at each of them.
  if (first === undefined || sources.length > 1 || !first.source.listsAll) return 'deletes'
  for await (const row of copy.rows(ALL_KEYS)) if (!seen.has(row.key)) run.addExtra(first, row)
  return null
}

/** The records of a range of times, and the rows of the copy with such a time. */
async function compareRange(run: ComparisonRun, from: string): Promise<VerificationGap | null> {
  run.method = 'range'
  const { copy, sources } = run.options
  const seen = new KeySet()
  for (const compared of sources) {
    for await (const records of compared.reader.listRange({ from })) {
      run.addRows(records.length)
      for (const { key } of records) seen.add(key)
      await run.comparePage(compared, records)
    }
  }
  const [only] = sources
  // A row that the range omits may only have an earlier time by now, so that it needs a second look by its key.
  if (only !== undefined && sources.length === 1 && (only.source.lookup ?? only.source.checks.find) != null)
    for await (const row of copy.rows(ALL_KEYS))
      if (row.upstreamAt !== null && row.upstreamAt >= from && !seen.has(row.key)) run.addExtra(only, row)
  return 'range'
}

/** Rows of the copy at random, looked up one by one. */
async function compareSample(run: ComparisonRun, count: number): Promise<VerificationGap | null> {
  run.method = 'sample'
  const { copy, sources, random } = run.options
  const sample: string[] = []
  let rows = 0
  for await (const { key } of copy.rows(ALL_KEYS)) {
    rows++
    if (sample.length < count) sample.push(key)
    else {
      const at = Math.floor(random.next() * rows)
      if (at < count) sample[at] = key
    }
  }
  const compared = required(sources[0], 'source')
  for (let start = 0; start < sample.length; start += SAMPLE_CHUNK) {
    const keys = sample.slice(start, start + SAMPLE_CHUNK)
    const found = await copy.find(keys)
    const { records } = await compared.reader.find(keys)
    run.addRows(keys.length)
    for (const key of keys) run.compareRow(compared, records.get(key) ?? null, found.get(key) ?? null)
  }
  return 'sample'
}

const SAMPLE_CHUNK = 50

class LimitError extends Error {}

/** The result so far, which also an interrupted comparison returns. */
class ComparisonRun {
  readonly options: ComparisonOptions
  method: VerificationMethod = 'listing'
  requestsMin: number | null = null
  readonly #candidates = new Map<ComparedSource, Map<string, Candidate>>()
  /** With several sources: keys whose row agrees with one of them, which is enough. */
  readonly #agreed = new KeySet()
  #count = 0
  #rows = 0
  #ignored = 0

  constructor(options: ComparisonOptions) {
    this.options = options
  }

  addRows(count: number): void {
    this.#rows += count
    this.options.onProgress?.(this.#rows)
  }

  async comparePage(compared: ComparedSource, records: readonly SourceRecord[]): Promise<void> {
    const rows = await this.options.copy.find(records.map(({ key }) => key))
    for (const record of records) this.compareRow(compared, record, rows.get(record.key) ?? null)
  }

  compareRow(compared: ComparedSource, record: SourceRecord | null, row: Row | null): void {
    const match = matchRow(record, row, this.options.ignore)
    if (match === 'ignored') this.#ignored++
    if (match !== 'different' && this.options.sources.length > 1 && record !== null) {
      this.#agreed.add(record.key)
      for (const own of this.#candidates.values()) if (own.delete(record.key)) this.#count--
    }
    if (match === 'different' && !(record !== null && this.#agreed.has(record.key)))
      this.#add(compared, record?.key ?? required(row, 'row').key, record, row)
  }

  addExtra(compared: ComparedSource, row: Row): void {
    this.#add(compared, row.key, null, row)
  }

  #add(compared: ComparedSource, key: string, record: SourceRecord | null, row: Row | null): void {
    const own = this.#candidates.get(compared) ?? new Map<string, Candidate>()
    this.#candidates.set(compared, own)
    if (!own.has(key)) this.#count++
    own.set(key, { key, record, row, seenAt: this.options.now() })
    if (this.#count >= CANDIDATES_MAX) throw new LimitError()
  }

  finish(gap: VerificationGap | null): Comparison {
    return {
      method: this.method,
      candidates: new Map([...this.#candidates].map(([compared, own]) => [compared, [...own.values()]])),
      rows: this.#rows,
      ignored: this.#ignored,
      gap,
      requestsMin: this.requestsMin,
    }
  }
}
