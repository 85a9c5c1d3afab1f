export type StrategyName =
  | 'keyset' | 'eventFeed' | 'search' | 'relay' | 'relayNested' | 'token' | 'pageNumber' | 'offset' | 'frontier'
  /** All of it in one answer. */
  | 'whole'
  /** Only in the `rest` source: by time alone, and what changed since a moment. */
  | 'timestamp' | 'window'
  /** Only in HubSpot's source: the archived objects, all of them every few minutes. */
  | 'archive'

/** Member → its type, or a shape inside. Members that only live within a cycle end with `?`. */
export interface StateShape {
  readonly [member: string]: string | StateShape
}

/** What each strategy hands from page to page. */
export const STATE_SHAPES: Readonly<Record<StrategyName, StateShape | null>> = {
  keyset: { cursorTimestamp: 'string | null', cursorId: 'string | null', 'untilMs?': 'number' },
  eventFeed: { cursor: 'string', cursorTime: 'string', 'cursorRank?': 'number' },
  search: { phase: "'delta' | 'deadlock'", cursorMs: 'number', 'untilMs?': 'number' },
  relay: { cursor: 'string | null', 'pace?': 'object' },
  relayNested: { cursor: 'string | null', 'outerDone?': 'boolean', 'nestedCursors?': 'Record<string, string>', 'pace?': 'object' },
  token: { cursor: 'string | null' },
  pageNumber: { page: 'number', pass: 'object' },
  offset: { offset: 'number', pass: 'object' },
  frontier: { phase: "'forward' | 'backfill'", 'headItemId?': 'string', 'headOrder?': 'string | number', anchors: 'object', checkedAt: 'number', 'pass?': 'object', 'tailCursor?': 'string', tailComplete: 'boolean', 'restartedAt?': 'number', 'ending?': 'object' },
  whole: null,
  timestamp: { cursor: 'string | null', 'untilMs?': 'number' },
  archive: { 'listedMs?': 'number', 'untilMs?': 'number', 'cursor?': 'string | null' },
  window: { since: 'string | null', 'untilMs?': 'number', 'token?': 'string' },
}

/** Two streams in one cycle, each with a state of its own. */
export function streamsStateShape(changes: StrategyName, deletes: StrategyName): StateShape {
  return { states: { 'changes?': STATE_SHAPES[changes] ?? {}, 'deletes?': STATE_SHAPES[deletes] ?? {} }, 'reading?': "'changes' | 'deletes'", 'tidemarks?': 'object' }
}
