import type { Execute, Page, SyncContext } from '../contract/index.ts'
import { captureAnchor, type AnchoredExecute } from './kit/anchored-execute.ts'
import { required } from '../values/required.ts'
import { earliestTidemark } from './kit/earliest-tidemark.ts'
import type { FlipFlopState } from './flip-flop.ts'
import { combineRetention } from './kit/combine-retention.ts'
import { requireMode, stateRejectedError } from './kit/strategy-errors.ts'

/** The streams by name, in reading order. Each `AnchoredExecute` contributes its part of the anchor. */
export type Streams<States extends object> = {
  readonly [Name in keyof States]: Execute<States[Name]> | AnchoredExecute<States[Name]>
}

/** The states of several streams that one sync reads in turn. */
export interface StreamsState<States extends object> {
  /** One entry per stream that has been read, changed only by its own pages. */
  readonly states: Partial<States>
  /** The stream being read; absent between cycles. */
  readonly reading?: keyof States & string
  /** The last tidemark of each stream. */
  readonly tidemarks?: StreamTidemarks<States>
}

type StreamTidemarks<States extends object> = { readonly [Name in keyof States]?: string }

/**
 * For sources that split one data set over several endpoints: changes in a table and deletions in an audit log, parents
 * and children. A cycle reads every stream to its end in turn, and the tidemark is the minimum over the streams.
 *
 *   changes ──no more──▶ deletes ──no more──▶ end of the cycle
 *
 * Give deletions an `upstreamUpdatedAt`: a deletion found late then does not remove a recreated record.
 *
 * ```ts
 * import { keyset, streams, type KeysetQuery, type SyncContext } from 'tidemark'
 *
 * type Incident = { id: string; updatedAt: string; title: string }
 * type Deletion = { id: string; deletedAt: string; incident: string }
 *
 * const read = (table: string) => async <Item>({ after, until, limit }: KeysetQuery, { fetch }: SyncContext) => {
 *   const cursor = `${after?.timestamp ?? ''},${after?.id ?? ''}`
 *   const response = await fetch(`https://desk.example/${table}?limit=${limit}&until=${until ?? ''}&after=${cursor}`)
 *   const items = (await response.json()) as Item[]
 *   return { items, end: items.length < limit }
 * }
 *
 * export const incidents = streams({
 *   changes: keyset<Incident>({
 *     read: read('incidents'), timestamp: ({ updatedAt }) => updatedAt, id: ({ id }) => id, lagMs: 15_000, limit: 100,
 *     toChange: (incident) => ({ type: 'upsert', key: incident.id, record: incident, upstreamUpdatedAt: incident.updatedAt }),
 *   }),
 *   deletes: keyset<Deletion>({
 *     read: read('audit'), timestamp: ({ deletedAt }) => deletedAt, id: ({ id }) => id, lagMs: 15_000, limit: 100,
 *     toChange: ({ incident, deletedAt }) => ({ type: 'delete', key: incident, upstreamUpdatedAt: deletedAt }),
 *   }),
 * })
 * ```
 */
export function streams<States extends object>(executes: Streams<States>): AnchoredExecute<StreamsState<States>> {
  type Name = keyof States & string
  const names = Object.keys(executes) as Name[]
  const [firstName, secondName] = names

  const execute: AnchoredExecute<StreamsState<States>> = async (stored, context) => {
    requireMode('streams', 'incremental', context, 'a replace cycle finds deletions by itself')
    const state: StreamsState<States> = stored === undefined ? { states: {} } : readState(stored)
    const { states, tidemarks } = state
    const reading = state.reading ?? required(firstName, 'a stream')
    const page: Page<States[Name]> = await executes[reading](states[reading], context)
    // A stream with more pages but no state must fail in the engine; keeping its old state would hide that.
    if (page.hasMore && page.nextState === undefined) return { ...page, nextState: undefined }

    const next = page.hasMore ? reading : names[names.indexOf(reading) + 1]
    const reached: StreamTidemarks<States> = {
      ...tidemarks,
      ...(typeof page.tidemark === 'string' && { [reading]: page.tidemark }),
    }
    const streamState = page.nextState ?? states[reading]
    return {
      ...page,
      hasMore: next !== undefined,
      tidemark: earliestTidemark(names.map((name) => reached[name])),
      nextState: {
        states: { ...states, ...(streamState !== undefined && { [reading]: streamState }) },
        ...(next !== undefined && { reading: next }),
        tidemarks: reached,
      },
    }
  }

  execute.anchor = async (context: SyncContext) => {
    const states: Partial<States> = {}
    for (const name of names) {
      const anchor = await captureAnchor(executes[name], context)
      if (anchor !== undefined) states[name] = anchor
    }
    return Object.keys(states).length === 0 ? undefined : { states }
  }

  function readState(state: StreamsState<States> | FlipFlopState<unknown, unknown>): StreamsState<States> {
    if ('phase' in state) return fromFlipFlop(state)
    if (typeof state.states !== 'object' || state.states === null)
      throw stateRejectedError('streams', '`states` is not an object')
    if (state.reading !== undefined && !names.includes(state.reading))
      throw stateRejectedError('streams', '`reading` is not the name of a stream')
    return state
  }

  /**
   * Reads the state of a flipFlop that `streams` replaced. A cycle begins with the first stream, whichever was next.
   */
  function fromFlipFlop({ deltaCursor, deletesCursor }: FlipFlopState<unknown, unknown>): StreamsState<States> {
    if (names.length !== 2 || firstName === undefined || secondName === undefined)
      throw stateRejectedError('streams', 'it is a flipFlop state of two streams')
    const states = {
      ...(deltaCursor !== undefined && { [firstName]: deltaCursor }),
      ...(deletesCursor !== undefined && { [secondName]: deletesCursor }),
    }
    return { states: states as Partial<States> }
  }

  return Object.assign(
    execute,
    combineRetention(...Object.values<Execute<any>>(executes as Record<string, Execute<any>>)),
  )
}
