import type { TrackSource } from '../../worker/track-options.ts'
import type { Clock, Execute, Mode } from '../../contract/index.ts'
import type { CycleOptions } from '../../engine/cycle-options.ts'
import type { SourceFixture } from './source-fixture.ts'

/** An empty system, the source that reads it, and the operations that change it. */
export interface SourceHarness {
  readonly source: TrackSource | { readonly mode: Mode; readonly execute: Execute<any> }
  /** The fetch that reaches the system; the real one by default. */
  readonly fetch?: CycleOptions['fetch']
  /** Secrets by name. */
  readonly secrets?: Readonly<Record<string, string>>
  /** The clock that source and system share; the real one by default. */
  readonly clock?: Clock
  /** Creates this many records, at the same time where the system supports it; returns their keys. */
  create(count: number): readonly string[] | Promise<readonly string[]>
  /** Changes each of them, at the same time where the system supports it. */
  change(keys: readonly string[]): void | Promise<void>
  /** Absent for a system that never deletes records. */
  remove?(keys: readonly string[]): void | Promise<void>
  /** The expected rows: the record that each key must have landed as. */
  rows(): Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>
  /** Advances time until the source must see everything written before. */
  settle?(): void | Promise<void>
  /** More than one page holds; 25 by default. */
  readonly multiPageCount?: number
  /** How many cycles of the delta it takes to report everything; one by default. */
  readonly cyclesPerRound?: number
  /** False when only a listing reveals deletions. */
  readonly deltaReportsDeletes?: boolean
  /** Set for a source that is read in partitions; `create` then spreads records over them. */
  readonly partitions?: PartitionHarness
  close?(): void | Promise<void>
}

/** The partitions of the system. */
export interface PartitionHarness {
  /** Adds a partition, which later records are spread over too. Absent if the partitions are fixed. */
  add?(): void | Promise<void>
  /** Removes a partition that has records, with all of them. Absent if the partitions are fixed. */
  remove?(): void | Promise<void>
  /** The source's time of one of `rows`, RFC 3339. Absent if the source claims no tidemark. */
  timeOf?(record: unknown): string
}

/** One requirement of a source: a title and its check. Independent of the test framework. */
export interface SourceCase {
  readonly name: string
  readonly needs: readonly SourceNeed[]
  run(trial: SourceFixture): Promise<void>
}

/**
 * listing  it can list all records, so that missing ones are deleted
 * delta    it can report changes
 * deletes  the system can delete records
 * reported the delta reports deletions
 * fetch    it sends requests through the context's fetch, where faults can be injected
 * partitions, addedPartitions, removedPartitions  it is read in partitions, which appear and vanish
 * tidemark the times of its records are known
 */
export type SourceNeed =
  | 'listing'
  | 'delta'
  | 'deletes'
  | 'reported'
  | 'fetch'
  | 'partitions'
  | 'addedPartitions'
  | 'removedPartitions'
  | 'tidemark'
