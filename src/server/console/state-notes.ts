import type { Outline, Standing, Store } from '../../contract/index.ts'
import { redactState, type RedactedState } from '../../redaction/redact-state.ts'
import { frontierOf, type Frontier } from '../../runner/coverage.ts'

/** What may be told of a state. */
export interface StateNote {
  readonly state: RedactedState | null
  readonly frontier: Frontier | null
}

const NOTHING: StateNote = { state: null, frontier: null }
const NOTES_MAX = 100_000

/** States are left out of the one question for all syncs, so each is read when it has moved, and what it tells is remembered. */
export class StateNotes {
  readonly #notes = new Map<string, { mark: string; note: StateNote }>()

  async of(store: Store, { worker, sync, checkpoint }: Standing): Promise<StateNote> {
    if (checkpoint.version === 0 && checkpoint.inflight === null) return NOTHING
    const name = [store.tenant, worker, sync].join('\n')
    const known = this.#notes.get(name)
    if (known?.mark === markOf(checkpoint)) return known.note
    const { committed, inflight } = await store.read({ worker, sync })
    const note = { state: redactState(committed), frontier: frontierOf(inflight?.state ?? committed) }
    if (this.#notes.size >= NOTES_MAX) this.#notes.clear()
    this.#notes.set(name, { mark: markOf(checkpoint), note })
    return note
  }
}

function markOf({ version, inflight }: Outline): string {
  return `${version}/${inflight?.cycle}/${inflight?.page}`
}
