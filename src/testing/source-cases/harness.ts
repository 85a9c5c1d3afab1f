import type { TrackSource } from '../../worker/track-options.ts'
import type { Clock, Execute, Mode } from '../../contract/index.ts'
import type { CycleOptions } from '../../engine/cycle-options.ts'
import type { SourceFixture } from './source-fixture.ts'

/** A system that nothing has been written to yet, the source that reads it, and the ways to change it. */
export interface SourceHarness {
  readonly source: TrackSource | { readonly mode: Mode; readonly execute: Execute<any> }
  /** The way to the system; the real one unless given. */
  readonly fetch?: CycleOptions['fetch']
  /** By name. */
  readonly secrets?: Readonly<Record<string, string>>
  /** The time that source and system share; the real one unless given. */
  readonly clock?: Clock
  /** Makes so many records, in one moment where the system can; their keys. */
  create(count: number): readonly string[] | Promise<readonly string[]>
  /** Changes each of them, in one moment where the system can. */
  change(keys: readonly string[]): void | Promise<void>
  /** Absent for a system that never lets go of anything. */
  remove?(keys: readonly string[]): void | Promise<void>
  /** What is true now: the record that each key must have landed as. */
  rows(): Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>
  /** Lets so much time pass that the source has to know of everything written before. */
  settle?(): void | Promise<void>
  /** More than one page holds; 25 unless said otherwise. */
  readonly multiPageCount?: number
  /** How many cycles of the delta tell of everything; one unless said otherwise. */
  readonly cyclesPerRound?: number
  /** False when only a listing shows what is gone. */
  readonly deltaReportsDeletes?: boolean
  close?(): void | Promise<void>
}

/** One promise of a source, as a sentence and its proof. Knows no test framework. */
export interface SourceCase {
  readonly name: string
  readonly needs: readonly SourceNeed[]
  run(trial: SourceFixture): Promise<void>
}

/**
 * listing  it can be read whole, so that what is not seen is gone
 * delta    it can be followed
 * deletes  the system lets go of records
 * told     and the delta tells of them
 * fetch    it asks through the context's fetch, where a bad line can be played
 */
export type SourceNeed = 'listing' | 'delta' | 'deletes' | 'told' | 'fetch'
